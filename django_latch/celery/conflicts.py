"""What a call does that did not get its lock."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Final, NoReturn

from celery.exceptions import Ignore, Retry

from django_latch import signals
from django_latch.celery import rerun, told
from django_latch.celery.resend import drop_queued, send_again
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchUnavailable
from django_latch.locks import JobFinished

if TYPE_CHECKING:
    from django_latch.celery.job import Job

logger = logging.getLogger("django_latch")

#: Longest time in seconds for which a message is sent away, far below any visibility time-out: a
#: broker that thinks a message lost delivers another copy of it.
LONGEST: Final = 30.0
#: Shortest one: a copy that looks every millisecond would be a busy loop through the broker.
SHORTEST: Final = 0.25
#: For a copy of a run whose process is dead: its worker, if that lives, ends the lease within this.
DEAD: Final = 1.5


def runs_anyway(job: Job, refusal: LatchError) -> bool:
    """Whether the task runs without its lock, because its options say so for an outage."""
    if not isinstance(refusal, LatchUnavailable) or job.flight.outages["run"] != "run":
        return False
    told.unguarded(job, refusal, "run")
    drop_queued(job)
    return True


def refused(job: Job, refusal: LatchNotAcquired | LatchUnavailable) -> Any:
    """Do what the options say about `refusal`, and return the task's result or raise."""
    if isinstance(refusal, LatchUnavailable):
        return _outage(job, refusal)
    if isinstance(refusal, JobFinished):
        facts = told.facts(job, refusal, "finished")
        done = "another copy of this message has done the work"
        logger.info("%s: %s", job.name, done, extra={"latch": facts})
        signals.send(signals.task_skipped, **facts)
        raise Ignore(done)
    holder = refusal.holder or {}
    if job.from_message and holder.get("task_id") == job.task_id:
        # The holder is a copy of this very message, alive or dead: the work must not be dropped,
        # and its result is the other run's to write. Ignore leaves the result alone.
        send_again(job, refusal, "own_copy", _until_expiry(refusal), job.waits)
        raise Ignore("another copy of this message is running")
    return _conflict(job, refusal)


def _conflict(job: Job, refusal: LatchNotAcquired) -> Any:
    # With at="enqueue" only the carrier of a next run asks for the key's lock.
    policy = job.flight.policies.get("run", "rerun")
    if not job.from_message and policy in ("retry", "rerun"):
        policy = "raise"  # there is no message to send again
    if policy == "rerun":
        slot = _next_run(job, refusal)
        if slot in ("merged", "none"):
            return _skip(job, refusal, "merged")
        policy = "retry"  # the next run is another task's
    if policy == "retry" and job.waits < job.flight.max_waits:
        _retry(job, refusal, "busy")
    if policy in ("retry", "wait"):
        policy = job.flight.on_exhausted
    if policy == "raise":
        raise refusal
    return _skip(job, refusal, "busy")


def _next_run(job: Job, refusal: LatchNotAcquired) -> str:
    """Make sure of one more run, and send this message again if it is to carry that."""
    countdown = rerun.countdown(job.waits)
    live = rerun.live_seconds(job.flight, countdown)
    try:
        payload = rerun.packed_run(job)
        slot = rerun.claim(job.key, str(job.identity), payload, live, again=job.carries)
    except LatchUnavailable as outage:
        _outage(job, outage)
    if slot.word == "carrier":
        send_again(job, refusal, "rerun", countdown, job.waits + 1, carries=True)
        raise Retry(str(refusal), when=countdown)
    return slot.word


def _outage(job: Job, refusal: LatchUnavailable) -> NoReturn:
    retries = job.flight.outages["run"] == "retry" and job.from_message
    if retries and job.waits < job.flight.max_waits:
        _retry(job, refusal, "unreachable")
    drop_queued(job)
    raise refusal


def _skip(job: Job, refusal: LatchNotAcquired, reason: str) -> Any:
    facts = told.facts(job, refusal, reason)
    logger.info(
        "%s: skipped%s, %s is held by %s for %s",
        job.name,
        ", the next run has its arguments" if reason == "merged" else "",
        job.key,
        told.who(refusal.holder or {}),
        told.age(refusal.holder or {}),
        extra={"latch": facts},
    )
    signals.send(signals.task_skipped, **facts)
    return job.flight.skip_value


def _retry(job: Job, refusal: LatchError, reason: str) -> NoReturn:
    # Between half and all of a delay that doubles, so that many waiting jobs spread out.
    countdown = random.uniform(0.5, 1) * min(2.0**job.waits, LONGEST)  # noqa: S311
    send_again(job, refusal, reason, countdown, job.waits + 1)
    raise Retry(str(refusal), when=countdown)


def _until_expiry(refusal: LatchError) -> float:
    left = max(refusal.ttl_remaining or 0, SHORTEST)
    if told.owner(refusal.holder or {}).provably_dead():
        left = min(left, DEAD)
    return min(left + random.uniform(0.05, 0.5), LONGEST)  # noqa: S311
