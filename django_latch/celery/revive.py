"""A worker looks for next runs whose carrier has not shown itself, and sends them again."""

from __future__ import annotations

import logging
from typing import Any, Final

from celery import bootsteps
from celery.signals import worker_init
from celery.utils import uuid

from django_latch.celery import impatient, rerun
from django_latch.celery.guarded import guarded_of
from django_latch.celery.header import HEADER, Carried
from django_latch.core import replies, verbs
from django_latch.core.calls import StoreError
from django_latch.exceptions import LatchError

logger = logging.getLogger("django_latch")

#: Seconds between two looks.
INTERVAL: Final = 2.0
#: Next runs that are looked at each time: the first to be overdue.
MOST: Final = 20
#: Seconds until what was sent again may be overdue again. Long, for the first message may only be
#: stuck in a long queue, and each time there would be one more.
LIVE: Final = 60.0


def look(app: Any) -> int:
    """Send every overdue next run again.

    Parameters:
        app: the worker's app.

    Returns:
        how many were sent.

    Raises:
        StoreError, LatchError: the store gave no usable answer.
    """
    return sum(_revive(app, name) for name in impatient.ask(verbs.due(MOST)))


def _revive(app: Any, key: str) -> bool:
    slot = impatient.ask(verbs.slot(key, "revive", "", LIVE))
    if slot.word != "carrier":
        return False
    name = _send(app, key, slot)
    logger.warning("%s: its next run is overdue, sent again: %s", name, key)
    return True


def pass_on(app: Any, key: str, job: str, made: int) -> None:
    """A carrier was revoked or has expired: what later calls left with it gets another one.

    Parameters:
        app: the worker's app.
        key: the lock.
        job: the carrier's identity; see `Job.identity`.
        made: when its own call was made.
    """
    slot = impatient.ask(verbs.pass_on(key, job, made, f"{uuid()}:0:0", LIVE))
    if slot.word == "carrier":
        name = _send(app, key, slot)
        logger.info("%s: its next run has another carrier, %s: %s", name, slot.job, key)


def _send(app: Any, key: str, slot: replies.Slot) -> str:
    """Send the message of a carrier; returns the task's name."""
    name, args, kwargs, kept = rerun.unpacked(slot.payload, app.conf.accept_content)
    task_id, retries, _ = slot.job.rsplit(":", 2)
    carried = Carried(task_id=task_id, key=key, carries=True)
    options = {**kept, "task_id": task_id, "retries": int(retries)}
    app.send_task(name, args, kwargs, headers={HEADER: carried.to_header()}, **options)
    return name


class Revival(bootsteps.StartStopStep):  # type: ignore[misc]
    """Looks as long as the consumer runs, if a task of the app has next runs at all."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    timer: Any = None
    troubled = False  # by an outage, which is told of once

    def start(self, parent: Any) -> None:
        """Begin to look; `parent` is the consumer."""
        guards = [guarded_of(task) for task in parent.app.tasks.values()]
        if any(guarded is not None and guarded.flight.reruns for guarded in guards):
            self.timer = parent.timer.call_repeatedly(INTERVAL, self.look, (parent.app,))

    def look(self, app: Any) -> None:
        """Look, or leave it to the next time."""
        try:
            look(app)
        except (StoreError, LatchError) as error:
            level = logging.DEBUG if self.troubled else logging.WARNING
            logger.log(level, "cannot look for overdue next runs: %s", error)
            self.troubled = True
        else:
            self.troubled = False

    def stop(self, parent: Any) -> None:
        """Look no longer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@worker_init.connect(dispatch_uid="django_latch.celery.revive", weak=False)
def prepare(sender: Any, **_: Any) -> None:
    """Add the step to a worker that is about to be set up.

    Parameters:
        sender: the worker.
    """
    sender.app.steps["consumer"].add(Revival)
