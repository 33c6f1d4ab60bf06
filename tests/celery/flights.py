"""More tasks for the tests: the lock at other times, and other ways out of a conflict."""

from __future__ import annotations

import ctypes
import os
from functools import partial, wraps
from typing import Any

from celery import Task, shared_task

from django_latch import current_lease, signals
from django_latch.celery import single_flight
from tests.celery.app import app, gate, mark, own_queue, tell_run, work

__all__ = ["app"]


def tell_signal(what: str, key: str, **payload: Any) -> None:
    """Mark that one of the signals about tasks was sent; `Label.next` finds it `of=":signals"`."""
    del payload["sender"], payload["signal"]
    mark(f"{key.rpartition(':')[2]}:signals", what, key=key, **payload)


for name in ("task_skipped", "task_deferred", "task_unguarded"):
    getattr(signals, name).connect(partial(tell_signal, name), weak=False)


@single_flight(key="queued:{label}", at="enqueue", enqueue_ttl=100)
@shared_task(bind=True)
def queued(self: Task, label: str, value: int = 0) -> str:
    return work(self, label)


def wide(label: str, value: int = 0) -> None:
    """What `narrow` says it is."""


@single_flight(key="narrow:{label}", at="enqueue")
@shared_task
@wraps(wide)
def narrow(label: str) -> None:
    """Celery looks at this signature, and others at that of `wide`."""


@single_flight(key="queued_pair:{label}", at="enqueue", limit=2)
@shared_task
def queued_pair(label: str) -> None:
    """Never runs."""


@single_flight(key="queued_late:{label}", at="enqueue", ttl=2)
@shared_task(bind=True, acks_late=True)
def queued_late(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="both:{label}", at="both", ttl=5, skip_value="no")
@shared_task(bind=True)
def both(self: Task, label: str, value: int = 0) -> str:
    return work(self, label)


@single_flight(key="both:{label}", at="both", on_conflict="raise")
@shared_task
def both_raising(label: str) -> None:
    """Never runs."""


@single_flight(key="both_late:{label}", at="both", ttl=2)
@shared_task(bind=True, acks_late=True)
def both_late(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="brief:{label}", at="both", enqueue_ttl=0.5)
@shared_task(bind=True)
def brief(self: Task, label: str) -> None:
    tell_run(self, label)


@single_flight(key="tries:{label}", at="both")
@shared_task(bind=True, max_retries=None)
def tries(self: Task, label: str, times: int) -> int:
    tell_run(self, label)
    if self.request.retries < times:
        raise self.retry(countdown=0)
    return self.request.retries


@single_flight(key="waiting:{label}", on_conflict="wait", timeout=20)
@shared_task(bind=True)
def waiting(self: Task, label: str, value: int = 0) -> str:
    tell_run(self, label, value=value)
    gate(label)
    return "done"


@single_flight(key="waiting:{label}", on_conflict="wait", timeout=0.3)
@shared_task
def waiting_raise(label: str) -> None:
    """Never runs."""


@single_flight(
    key="waiting:{label}",
    on_conflict={"run": "wait"},
    timeout=0.3,
    on_exhausted="skip",
    skip_value="no",
)
@shared_task
def waiting_skip(label: str) -> None:
    """Never runs."""


@single_flight(key="waiting_late:{label}", on_conflict="wait", timeout=20, ttl=5)
@shared_task(bind=True, acks_late=True)
def waiting_late(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="pair:{label}", limit=2)
@shared_task(bind=True)
def pair(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="pair_late:{label}", limit=2, ttl=2)
@shared_task(bind=True, acks_late=True)
def pair_late(self: Task, label: str) -> str:
    return work(self, label)


def newest_of(task: Task, label: str, value: Any) -> Any:
    lease = current_lease()
    mark(label, "run", value=value, id=task.request.id, lock=lease and lease.name)
    gate(label)
    return value


@single_flight(key="newest:{label}", on_conflict="rerun", ttl=2, skip_value="merged")
@shared_task(bind=True)
def newest(self: Task, label: str, value: Any = None) -> Any:
    return newest_of(self, label, value)


@single_flight(key="newest:{label}", on_conflict="rerun", ttl=2, max_waits=0, on_exhausted="skip")
@shared_task(bind=True)
def newest_other(self: Task, label: str, value: Any = None) -> Any:
    return newest_of(self, label, value)


@single_flight(key="newest_both:{label}", at="both", on_conflict="rerun", ttl=2)
@shared_task(bind=True)
def newest_both(self: Task, label: str, value: Any = None) -> Any:
    return newest_of(self, label, value)


@single_flight(key="newest_queued:{label}", at="enqueue", on_conflict="rerun", ttl=2)
@shared_task(bind=True)
def newest_queued(self: Task, label: str, value: Any = None) -> Any:
    return newest_of(self, label, value)


@single_flight(key="newest_again:{label}", on_conflict="rerun", ttl=2)
@shared_task(bind=True)
def newest_again(self: Task, label: str, value: Any = None) -> Any:
    tell_run(self, label, value=value)
    gate(label)
    if value == "last" and self.request.retries == 0:
        raise self.retry(countdown=0)
    return value


@single_flight(key="keeps:{label}", ttl=5, hold_on_retry=True, enqueue_ttl=100)
@shared_task(bind=True)
def keeps(self: Task, label: str, countdown: float = 1.0, value: str = "first") -> int:
    tell_run(self, label, value=value)
    if self.request.retries < 2:
        raise self.retry(countdown=countdown)
    return self.request.retries


@shared_task(bind=True)
@single_flight(key="keeps_under:{label}", ttl=5, hold_on_retry=True)
def keeps_under(self: Task, label: str, countdown: float = 1.0) -> int:
    tell_run(self, label)
    if self.request.retries < 1:
        raise self.retry(countdown=countdown)
    return self.request.retries


@single_flight(key="keeps_auto:{label}", ttl=5, hold_on_retry=True)
@shared_task(
    bind=True, autoretry_for=(ValueError,), max_retries=1, default_retry_delay=1, retry_jitter=False
)
def keeps_auto(self: Task, label: str) -> None:
    tell_run(self, label)
    raise ValueError("again")


@single_flight(key="keeps_unsent:{label}", ttl=5, hold_on_retry=True)
@shared_task(bind=True)
def keeps_unsent(self: Task, label: str) -> None:
    tell_run(self, label)
    self.retry(countdown=0, serializer="nonsense")


@single_flight(key="aborts:{label}", ttl=1.5, on_lost="abort")
@shared_task(bind=True)
def aborts(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="child:{label}", at="both")
@shared_task(bind=True)
def child(self: Task, label: str) -> None:
    mark(label, "child", headers=self.request.headers, id=self.request.id)


@single_flight(key="mother:{label}", at="both", hold_on_retry=True)
@shared_task(bind=True)
def mother(self: Task, label: str) -> None:
    mark(label, "mother", headers=self.request.headers, id=self.request.id)
    child.apply_async((label,), headers=self.request.headers, queue=own_queue(self))


@single_flight(key="member:{label}", at="both", skip_value="no")
@shared_task
def member(label: str) -> str:
    return "done"


@single_flight(key="member:{label}", at="both", on_conflict={"enqueue": "skip", "run": "raise"})
@shared_task
def strict(label: str) -> str:
    return "done"


@single_flight(key="member:{label}", at="both", on_conflict="raise")
@shared_task
def stern(label: str) -> str:
    return "done"


@shared_task
def echo(value: Any) -> Any:
    return value


@shared_task
def fails(label: str) -> None:
    raise ValueError(label)


@shared_task(bind=True)
def becomes(self: Task, label: str, what: str = member.name) -> None:
    raise self.replace(app.signature(what, (label,), immutable=True).set(queue=own_queue(self)))


@single_flight(key="outage:{label}", on_outage="raise")
@shared_task(bind=True)
def outage_raise(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(
    key="outage:{label}", on_outage="raise", on_conflict="wait", timeout=0.5, on_exhausted="skip"
)
@shared_task(bind=True)
def outage_wait(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}", on_outage="run")
@shared_task(bind=True)
def outage_run(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}", on_outage="retry")
@shared_task(bind=True)
def outage_retry(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}", on_outage="retry", max_waits=1)
@shared_task(bind=True)
def outage_impatient(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}", at="both")
@shared_task(bind=True)
def outage_both(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}", at="both", on_outage="run")
@shared_task(bind=True)
def outage_both_run(self: Task, label: str) -> str:
    return work(self, label)


@single_flight(key="outage:{label}")
@shared_task(bind=True)
def outage_error(self: Task, label: str) -> None:
    work(self, label)
    raise KeyError("its own")


@single_flight(key="greedy:{label}", ttl=1.5)
@shared_task(bind=True)
def greedy(self: Task, label: str, seconds: float) -> str:
    return hog(label, seconds)


@single_flight(key="greedy_kept:{label}", ttl=1.5, parent_heartbeat=True)
@shared_task(bind=True)
def greedy_kept(self: Task, label: str, seconds: float) -> str:
    return hog(label, seconds)


def hog(label: str, seconds: float) -> str:
    """One C call that lets no other thread run."""
    lease = current_lease()
    assert lease is not None
    mark(label, "start", pid=os.getpid(), fence=lease.fence)
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))
    mark(label, "end", lost=lease.lost)
    return lease.lost or "kept"
