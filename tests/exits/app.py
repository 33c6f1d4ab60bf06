"""Tasks that end in every way there is, for each kind of lock."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from celery import Task, shared_task
from celery.exceptions import Ignore, Reject

from django_latch.celery import single_flight
from django_latch.exceptions import LatchValueError
from tests.celery.app import app, gate, mark, marks

#: Environment variable: JSON of Celery settings for one worker.
CONF = "LATCH_EXITS_CONF"

app.conf.update(json.loads(os.environ.get(CONF, "{}")))

#: Where a lock may be taken.
PLACES = ("run", "enqueue", "both")
#: Seconds: one that nobody waits for, and one that a test can wait for.
LONG, SHORT = 60, 3
#: Seconds that a queued job may block its twins.
QUEUED = 3

#: What the task decorator is told, by kind of task.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"max_retries": 1},
    "auto": {"autoretry_for": (ValueError,), "max_retries": 1, "default_retry_delay": 3},
    "late": {"acks_late": True, "max_retries": 1},
    "lost": {"acks_late": True, "reject_on_worker_lost": True},
    "retried": {"retry_on_worker_lost": True, "default_retry_delay": 0},
}


class Broken(ValueError):
    """What a task raises that fails."""


def leave(task: Task, label: str, how: str) -> str:
    """Say hello, wait at the gate, and end as told."""
    first = marks(os.getpid()).incr(f"runs:{label}") == 1
    try:
        tell(task, label)
        match how:
            case "deaf":  # to SIGTERM, so that no `finally` of ours can help
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                gate(label)
            case "busy":  # one call into C that keeps the GIL for minutes
                sum(range(10**11))
            case _:
                gate(label)
        if first:
            end(task, how)
    finally:
        if how == "tidy":
            mark(label, "tidying")
            gate(label)
        mark(label, "end")
    return "done"


def tell(task: Task, label: str) -> None:
    """Mark the start of a run."""
    request = task.request
    waits = (request.headers or {}).get("django_latch", {}).get("waits", 0)
    mark(label, "start", id=request.id, retries=request.retries, waits=waits)


def end(task: Task, how: str) -> None:
    """What the first run of a job does at its end."""
    match how:
        case "error":
            raise Broken("no")
        case "ignore":
            raise Ignore
        case "reject":
            raise Reject("no", requeue=False)
        case "requeue":
            raise Reject("later", requeue=True)
        case "retry":
            raise task.retry(countdown=3)
        case "exhausted":
            raise task.retry(max_retries=0, exc=Broken("no more"))
        case "replace":
            queue = task.request.delivery_info["routing_key"]
            raise task.replace(task.signature((task.request.args[0], "success")).set(queue=queue))
        case "system exit":
            raise SystemExit(3)


def make(at: str, kind: str, ttl: float) -> Task | None:
    """A task of a kind, with its lock at a place; None while there is no lock at that place."""

    def function(self: Task, label: str, how: str = "success") -> str:
        return leave(self, label, how)

    try:
        queued = {} if at == "run" else {"enqueue_ttl": QUEUED}
        flight = single_flight(key="exit:{label}", at=at, ttl=ttl, **queued)
    except LatchValueError:
        return None
    made: Task = flight(
        shared_task(name=f"exits.{at}.{kind}.{ttl}", bind=True, **KINDS[kind])(function)
    )
    return made


TASKS: dict[tuple[str, str, float], Task | None] = {
    (at, kind, ttl): make(at, kind, ttl) for at in PLACES for kind in KINDS for ttl in (LONG, SHORT)
}


@shared_task
def link(given: str, label: str) -> str:
    """The next link of a chain."""
    mark(label, "link", given=given)
    return "linked"


@shared_task(bind=True)
def child(self: Task, label: str) -> None:
    """A task that follows one with a lock."""
    mark(label, "child", ours=[name for name in self.request.headers or {} if "latch" in name])
