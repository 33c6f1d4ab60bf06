"""In a prefork worker's main process: tell the lock store when a child has died.

A child that is killed cannot give its lock back, and its lease may have a long way to go. Its
parent shortens the lease, and only on proof of death: a child that may be alive would go on without
its lock until its next heartbeat. Celery's own signals are no proof (a hard time limit is announced
before the child is stopped), not always sent, and up to 5 seconds late; so the parent also looks
for itself.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from weakref import ref

from celery import bootsteps
from celery.signals import (
    task_failure,
    task_received,
    task_retry,
    task_revoked,
    worker_init,
)
from celery.worker.state import active_requests

from django_latch.celery import impatient
from django_latch.celery.guarded import guarded_of
from django_latch.celery.header import HEADER, RUN, read
from django_latch.celery.job import copy_lock_of
from django_latch.celery.kept import Kept, beat
from django_latch.celery.keying import header_for
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.owner import process_started
from django_latch.core.timing import now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchError

logger = logging.getLogger("django_latch")

#: Seconds between two looks at the children.
INTERVAL: Final = 0.5
#: Seconds between two looks at what is to be renewed for a child.
TICK: Final = 0.1
#: Seconds the lock of a dead run stays taken from then on.
GRACE: Final = 0.5
#: Seconds a run is remembered after Celery has done with it: it may be about to be killed.
LINGER: Final = 2.0


@dataclass(eq=False)
class _Run:
    """A run in a child process, and the locks that it may hold."""

    names: tuple[str, ...]
    token: str = field(repr=False)
    pid: int
    request: ref[Any]
    kept: Kept | None = None
    until: float | None = None

    def is_over(self) -> bool:
        """Whether Celery has done with it, and some time has passed since."""
        if self.request() in active_requests:
            return False
        if self.until is None:
            self.until = now() + LINGER
        return now() > self.until


#: Runs in children.
_running: list[_Run] = []
#: When the children were started; where that is unknown, None.
_children: dict[int, int | None] = {}


@task_received.connect(dispatch_uid="django_latch.celery", weak=False)
def received(sender: Any, request: Any, **_: Any) -> None:
    """Make the token of a run before the run begins, so that its parent knows it too.

    Parameters:
        sender: the worker's consumer.
        request: the worker's side of the request; what is put into its dict reaches the child.
    """
    if not _is_prefork(sender):
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
    # No signal tells of it; and of a message that goes back to its queue none tells at all.
    request.on_accepted = partial(_accepted, ref(request), type(request).on_accepted)


def _accepted(request: ref[Any], original: Callable[..., Any], pid: int, when: float) -> Any:
    """A child begins a run."""
    found = request()
    if found is None:
        return None
    carried = read(found.request_dict, found.id)
    if carried and carried.key:
        names = (carried.key, copy_lock_of(found.id))
        token = found.request_dict[RUN]
        guarded = guarded_of(found.task)
        kept = Kept.of(guarded.flight, carried.key, token) if guarded else None
        _running.append(_Run(names, token, pid, request, kept))
    return original(found, pid, when)


@task_failure.connect(dispatch_uid="django_latch.celery", weak=False)
@task_retry.connect(dispatch_uid="django_latch.celery", weak=False)
@task_revoked.connect(dispatch_uid="django_latch.celery", weak=False)
def look(**_: Any) -> None:
    """Look at all children, and shorten the leases of runs whose process is dead."""
    runs = list(_running)
    dead = {pid for pid in {run.pid for run in runs} if _is_dead(pid)}
    for run in runs:
        if run.pid in dead:
            _shorten(run)
        if run.pid in dead or run.is_over():
            _running.remove(run)
    for pid in dead:
        _children.pop(pid, None)


def _is_dead(pid: int) -> bool:
    """Whether a child is gone for certain."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    started = process_started(pid)
    # 0: a zombie, not reaped yet. Another start: the pid has been used again.
    return started == 0 or _children.setdefault(pid, started) not in (None, started)


def renew() -> None:
    """Renew the locks of the children whose tasks ask for that."""
    beat(run.kept for run in _running if run.kept is not None)


def _shorten(run: _Run) -> None:
    try:
        for name in run.names:
            impatient.ask(verbs.shorten(name, run.token, None, GRACE))
    except (StoreError, LatchError) as error:
        logger.warning("%s: dead, but its lease goes on to its end: %s", run, error)


def _is_prefork(consumer: Any) -> bool:
    return type(consumer.pool).__module__ == "celery.concurrency.prefork"


class Watch(bootsteps.StartStopStep):  # type: ignore[misc]
    """Looks at the children as long as the consumer runs."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    timers: tuple[Any, ...] = ()

    def start(self, parent: Any) -> None:
        """Begin to look; `parent` is the consumer."""
        if not _is_prefork(parent):
            return
        every = parent.timer.call_repeatedly
        self.timers = (every(INTERVAL, look),)
        guards = [guarded_of(task) for task in parent.app.tasks.values()]
        if any(guarded is not None and guarded.flight.parent_heartbeat for guarded in guards):
            self.timers += (every(TICK, renew),)

    def stop(self, parent: Any) -> None:
        """Look no longer."""
        for timer in self.timers:
            timer.cancel()
        self.timers = ()


@worker_init.connect(dispatch_uid="django_latch.celery", weak=False)
def watch(sender: Any, **_: Any) -> None:
    """Add the watch to a worker that is about to be set up."""
    sender.app.steps["consumer"].add(Watch)
    # A cold shutdown kills children that do not end by themselves, and nobody looks any more then.
    atexit.register(look)


def _forget() -> None:
    """In a child: nothing here is its own."""
    _running.clear()
    _children.clear()


os.register_at_fork(after_in_child=_forget)
