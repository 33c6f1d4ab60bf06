"""Messages that a worker will not run: the lock that came with one is freed."""

from __future__ import annotations

import logging
from typing import Any

from celery.signals import task_rejected, task_revoked, task_unknown

from django_latch.celery import impatient, revive
from django_latch.celery.header import Carried, read
from django_latch.celery.job import identity_of
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.exceptions import LatchError

logger = logging.getLogger("django_latch")


@task_revoked.connect(dispatch_uid="django_latch.celery.dropped", weak=False)
def revoked(sender: Any, request: Any, **_: Any) -> None:
    """It was revoked, or has expired. If its run had begun, its lock is another one by now.

    Parameters:
        sender: the task.
        request: the message, as its task would see it.
    """
    carried = read(request.headers, request.id)
    _free(carried)
    if carried is None or carried.key is None or not carried.carries:
        return
    try:
        revive.pass_on(sender.app, carried.key, identity_of(request), carried.made)
    except (StoreError, LatchError) as error:
        logger.warning("%s: its next run has lost its carrier: %s", carried.key, error)


@task_unknown.connect(dispatch_uid="django_latch.celery.dropped", weak=False)
@task_rejected.connect(dispatch_uid="django_latch.celery.dropped", weak=False)
def unreadable(message: Any, **_: Any) -> None:
    """This worker cannot read it, and throws it away.

    Parameters:
        message: the message, as it came.
    """
    headers = message.headers or {}
    _free(read(headers, headers.get("id")))


def _free(carried: Carried | None) -> None:
    if carried is None or carried.key is None or carried.token is None:
        return
    try:
        impatient.ask(verbs.end(carried.key, carried.token, "released", resent=True))
    except (StoreError, LatchError) as error:
        logger.warning("the lock %s waits on for a message that is gone: %s", carried.key, error)
    else:
        logger.info("freed the lock %s of a message that will not run", carried.key)
