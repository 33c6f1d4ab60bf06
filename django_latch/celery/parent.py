"""In a prefork worker's main process: tell the lock store when a child has died.

A child that is killed cannot give its lock back, and its lease may have a long way to go. Its
parent knows of the death within milliseconds. It shortens the lease, and only on proof of death: a
child that may be alive would go on without its lock until its next heartbeat.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from weakref import WeakSet

from celery.exceptions import TimeLimitExceeded
from celery.signals import task_failure, task_received, task_retry, task_revoked

from django_latch.celery.guarded import guarded_of
from django_latch.celery.header import HEADER, RUN, read
from django_latch.celery.outgoing import header_for
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.owner import process_started
from django_latch.core.timing import now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchError
from django_latch.store.connections import store

logger = logging.getLogger("django_latch")

#: Seconds the lock of a dead run stays taken. A hard time limit is announced before the child is
#: stopped, first with SIGTERM and 0.1 s later with SIGKILL.
GRACE: Final = 1.0
#: Seconds the worker's main process waits for the lock store, at most.
PATIENCE: Final = 0.5

#: Requests of guarded tasks that this process received, and the process they belong to: a child
#: inherits the set, but none of the requests.
_received: WeakSet[Any] = WeakSet()
_pid = os.getpid()


@task_received.connect(dispatch_uid="django_latch.celery", weak=False)
def received(sender: Any, request: Any, **_: Any) -> None:
    """Make the token of a run before the run begins, so that its parent knows it too.

    Parameters:
        sender: the worker's consumer.
        request: the worker's side of the request; what is put into its dict reaches the child.
    """
    global _pid
    if type(sender.pool).__module__ != "celery.concurrency.prefork":
        return  # the runs are in this very process, and die with it
    guarded = guarded_of(request.task)
    if guarded is None:
        return
    facts = request.request_dict
    if read(facts, request.id) is None and not callable(guarded.flight.key):
        carried = header_for(guarded, request.task, request.id, facts, request.args, request.kwargs)
        if carried is not None:
            facts[HEADER] = carried.to_header()
    facts[RUN] = new_token()
    if _pid != os.getpid():
        _received.clear()
        _pid = os.getpid()
    _received.add(request)


@task_failure.connect(dispatch_uid="django_latch.celery", weak=False)
def failed(task_id: str, exception: BaseException, **_: Any) -> None:
    """A run failed: because its child is gone, or will be killed for its hard time limit."""
    certain = isinstance(exception, TimeLimitExceeded)
    _shorten(task_id, _any_process if certain else _is_gone)


@task_retry.connect(dispatch_uid="django_latch.celery", weak=False)
def retried(request: Any, **_: Any) -> None:
    """A run is retried, perhaps by this process because its child is gone."""
    _shorten(request.id, _is_gone)


@task_revoked.connect(dispatch_uid="django_latch.celery", weak=False)
def revoked(request: Any, terminated: bool, signum: Any, **_: Any) -> None:
    """A run was revoked; SIGKILL has been sent by now, any other signal leaves it a choice."""
    certain = terminated and signum == signal.SIGKILL
    _shorten(request.id, _any_process if certain else _is_gone)


def _any_process(pid: int) -> bool:
    return True


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return process_started(pid) == 0  # a zombie


def _shorten(task_id: str, dead: Callable[[int], bool]) -> None:
    """Shorten the leases of the runs of `task_id` whose process is `dead`."""
    if _pid != os.getpid():
        return  # a child's own signals
    for request in list(_received):
        pid = request.worker_pid
        if request.id != task_id or not pid or not dead(pid):
            continue
        _received.discard(request)
        carried, token = read(request.request_dict, task_id), request.request_dict[RUN]
        if carried is None or carried.key is None:
            continue
        call = verbs.shorten(carried.key, token, None, GRACE)
        try:
            store().call(replace(call, until=now() + PATIENCE))
        except (StoreError, LatchError) as error:
            logger.warning("the lock %s of a dead run stays until its lease ends: %s", carried.key, error)
