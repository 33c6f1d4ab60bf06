"""The Celery project of these tests: its tasks tell a Redis list what they do."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import cache
from typing import Any

import django
import redis
from celery import Celery, Task, shared_task
from celery.exceptions import Ignore, Reject
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
if not apps.ready:
    django.setup()

from django_latch import current_lease
from django_latch.celery import SingleFlight, single_flight
from tests import servers
from tests.celery.harness import MARKS

#: Longest time a task waits at its gate, in seconds: a failed test must not leave it for ever.
PATIENCE = 60


app = Celery("latch_tests", set_as_current=True)
app.config_from_object("tests.celery.celeryconfig")


@cache
def marks(pid: int) -> redis.Redis:
    """A client of process `pid`, for good: one that is thrown away would run its destructor just
    when the test sends a signal, and Python drops what a handler raises in there."""
    return redis.Redis.from_url(
        servers.url(MARKS), decode_responses=True, socket_timeout=PATIENCE + 5
    )


def mark(label: str, what: str, **more: Any) -> None:
    """Tell the test that something happened."""
    event = {"what": what, "pid": os.getpid(), "at": time.time(), **more}
    marks(os.getpid()).rpush(f"marks:{label}", json.dumps(event))


def gate(label: str) -> None:
    """Wait until the test lets one go on."""
    if marks(os.getpid()).blpop([f"gate:{label}"], timeout=PATIENCE) is None:
        raise TimeoutError(f"nobody opened the gate of {label}")


def own_queue(task: Task) -> str:
    """The queue this message came from."""
    return str(task.request.delivery_info["routing_key"])


def tell_run(task: Task, label: str, **more: Any) -> None:
    """Mark a run of a task, with what may have been inherited."""
    lease = current_lease()
    request = task.request
    mark(
        label,
        "run",
        id=request.id,
        retries=request.retries,
        lock=lease and lease.name,
        waits=(request.headers or {}).get("django_latch", {}).get("waits", 0),
        **more,
    )


def work(task: Task | None, label: str) -> str:
    """Start, wait for the test, end."""
    request = task.request if task else None
    lease = current_lease()
    mark(
        label,
        "start",
        id=request and request.id,
        retries=request and request.retries,
        headers=request and request.headers,
        lock=lease and lease.name,
    )
    try:
        gate(label)
    finally:
        mark(label, "end")
    return "done"


@single_flight(key="hold:{label}")
@shared_task(bind=True)
def hold(self: Task, label: str, value: int = 0) -> str:
    return work(self, label)


@single_flight(ttl=5)
@shared_task(bind=True)
def no_key(self: Task, label: str, value: int = 0) -> str:
    return work(self, label)


@single_flight(key="raising:{label}", on_conflict="raise")
@shared_task
def raising(label: str) -> str:
    return work(None, label)


@single_flight(key="patient:{label}", on_conflict="retry")
@shared_task(bind=True)
def patient(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="patient:{label}", on_conflict="retry", max_waits=1)
@shared_task(bind=True)
def impatient(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(
    key="patient:{label}", on_conflict="retry", max_waits=0, on_exhausted="skip", skip_value="no"
)
@shared_task(bind=True)
def indifferent(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="late:{label}", ttl=3)
@shared_task(bind=True, acks_late=True, reject_on_worker_lost=True)
def late(self: Task, label: str) -> str:
    return work(self, label)


@shared_task
def linked(value: str, label: str) -> None:
    mark(label, "linked", value=value)


@single_flight(key="fragile:{label}", ttl=7)
@shared_task(bind=True, acks_late=True)
def fragile(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="rejects:{label}")
@shared_task(bind=True, acks_late=True)
def rejects(self: Task, label: str) -> str:
    if marks(os.getpid()).incr(f"rejected:{label}") == 1:
        raise Reject("not now", requeue=True)
    return "second time"


@single_flight(key="slow:{label}", ttl=60)
@shared_task(bind=True)
def slow(self: Task, label: str) -> str:
    return work(self, label)


@shared_task(bind=True)
@single_flight(key="slow:{label}", ttl=60)
def slow_under(self: Task, label: str) -> str:
    return work(self, label)


@shared_task(bind=True, single_flight=SingleFlight(key="slow:{label}", ttl=60))
def slow_option(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="tidies:{label}", ttl=60)
@shared_task(bind=True)
def tidies(self: Task, label: str) -> None:
    mark(label, "start")
    try:
        gate(label)
    finally:
        mark(label, "tidying")
        gate(label)
        mark(label, "tidied")


@single_flight(key="short:{label}", ttl=1.5)
@shared_task(bind=True)
def short(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="limited:{label}", ttl=60)
@shared_task(bind=True, soft_time_limit=1)
def limited(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="hard:{label}", ttl=60)
@shared_task(bind=True, time_limit=1)
def hard(self: Task, label: str) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that no `finally` of ours can help
    return work(self, label)


@single_flight(key="exits:{label}", ttl=60)
@shared_task(bind=True)
def leaves(self: Task, label: str, how: str) -> str:
    mark(label, "start")
    match how:
        case "system exit":
            raise SystemExit(3)
        case "ignore":
            raise Ignore
        case "reject":
            raise Reject("no", requeue=False)
        case "error":
            raise ValueError("no")
    return "done"


def try_again(task: Task, label: str, times: int) -> int:
    tell_run(task, label)
    if task.request.retries < times:
        raise task.retry(countdown=0)
    return task.request.retries


@single_flight(key="again:{label}", ttl=60)
@shared_task(bind=True, max_retries=None)
def again(self: Task, label: str, times: int) -> int:
    return try_again(self, label, times)


@shared_task(bind=True, max_retries=None)
@single_flight(key="again:{label}", ttl=60)
def again_under(self: Task, label: str, times: int) -> int:
    return try_again(self, label, times)


@shared_task(bind=True, max_retries=None, single_flight=SingleFlight(key="again:{label}", ttl=60))
def again_option(self: Task, label: str, times: int) -> int:
    return try_again(self, label, times)


@single_flight(key="lets_go:{label}", ttl=60, on_conflict="retry")
@shared_task(bind=True)
def lets_go(self: Task, label: str) -> int:
    tell_run(self, label)
    if self.request.retries == 0:
        gate(label)
        raise self.retry(countdown=0)
    return self.request.retries


@single_flight(key="sends_away:{label}")
@shared_task(bind=True)
def sends_away(self: Task, label: str) -> None:
    raise self.retry(countdown=0, queue=f"nobody-{label}")


@single_flight(key="move:{label}:{step}", ttl=60)
@shared_task(bind=True)
def moves(self: Task, label: str, step: int) -> str:
    tell_run(self, label)
    if step == 1:
        raise self.retry(args=(label, 2), kwargs={}, countdown=0)
    return "moved"


@single_flight(key="auto:{label}", ttl=60)
@shared_task(bind=True, autoretry_for=(ValueError,), max_retries=3, default_retry_delay=0)
def auto(self: Task, label: str) -> int:
    tell_run(self, label)
    if self.request.retries < 3:
        raise ValueError("again")
    return self.request.retries


@single_flight(key="replaced:{label}", ttl=60)
@shared_task(bind=True)
def replaced(self: Task, label: str, level: int) -> str:
    tell_run(self, label, level=level)
    if level:
        raise self.replace(replaced.s(label, level - 1).set(queue=own_queue(self)))
    return "replaced"


@single_flight(key="parent:{label}", ttl=60)
@shared_task(bind=True)
def parent(self: Task, label: str) -> str:
    mark(label, "parent", headers=self.request.headers)
    child = (f"{label}-child",)
    hold.apply_async(child, headers=self.request.headers, queue=own_queue(self))
    return f"{label}-link"


@shared_task
@single_flight(key="under:{label}")
def under(label: str) -> str:
    return work(None, label)


@shared_task(bind=True)
@single_flight(key="under:{label}")
def under_bound(self: Task, label: str) -> str:
    return work(self, label)


@shared_task(single_flight=SingleFlight(key="option:{label}"))
def option(label: str) -> str:
    return work(None, label)


class Audited(Task):
    """A base class of the project's own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return ("audited", super().__call__(*args, **kwargs))


@single_flight(key="based:{label}")
@shared_task(base=Audited, name="tests.named", bind=True)
def based(self: Task, label: str) -> str:
    return work(self, label)


class Classy(Task):
    """A task written as a class."""

    name = "tests.classy"
    single_flight = SingleFlight(key="class:{label}")

    def run(self, label: str) -> str:
        return work(self, label)


classy = app.register_task(Classy())


@single_flight(key="app:{label}")
@app.task
def of_app(label: str) -> str:
    return work(None, label)


@shared_task
def unguarded(label: str) -> str:
    mark(label, "ran")
    return "ran"
