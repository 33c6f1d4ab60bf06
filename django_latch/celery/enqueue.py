"""The lock that is taken when a call is sent, and travels in its message."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery.result import EagerResult

from django_latch import signals
from django_latch.celery import canvas, queued, rerun, told
from django_latch.celery.times import queue_seconds
from django_latch.core.errors import outage
from django_latch.core.owner import record
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchNotAcquired, LatchUnavailable
from django_latch.heartbeat import heartbeat

if TYPE_CHECKING:
    from django_latch.celery.header import Carried
    from django_latch.celery.outgoing import Outgoing

logger = logging.getLogger("django_latch")


def send(call: Outgoing, carried: Carried) -> Any:
    """Take the lock of a call and send the message with it, or do what the options say.

    Parameters:
        call: the call.
        carried: its header, with the key; made for this call alone.

    Returns:
        what ``apply_async`` returns; where nothing is sent, the result of the job that has the
        lock, or, if that is no job, a finished one with `skip_value`.

    Raises:
        LatchBusy, LatchUnavailable: as the options say.
    """
    if carried.key is None:
        return call.send()
    token, here = new_token(), heartbeat.generation
    try:
        refusal = _take(call, carried.key, token)
        if refusal is None:
            carried.token = token
            return call.send()
    except BaseException:
        if heartbeat.generation == here:  # not in a child that was forked meanwhile
            queued.give_back(carried.key, token)
        raise
    if isinstance(refusal, LatchUnavailable):
        return _outage(call, refusal)
    return _conflict(call, carried, refusal)


def _take(call: Outgoing, key: str, token: str) -> LatchNotAcquired | LatchUnavailable | None:
    """Take the lock; a refusal or an outage as a value, for it is not the publisher's."""
    flight = call.guarded.flight
    seconds = queue_seconds(call.task, call.options, flight.queue_seconds)
    try:
        queued.take(key, token, seconds, flight.limit, _record(call))
    except (LatchNotAcquired, LatchUnavailable) as error:
        return outage(error)
    return None


def _record(call: Outgoing) -> str:
    given = call.options
    return record(
        f"{call.task.name} (queued)",
        process=False,
        task=call.task.name,
        task_id=call.task_id,
        root_id=given.get("root_id"),
        parent_id=given.get("parent_id"),
        args=told.arguments(given.get("argsrepr"), call.args, given.get("kwargsrepr"), call.kwargs),
    )


def _outage(call: Outgoing, outage: LatchUnavailable) -> Any:
    if call.guarded.flight.outages["enqueue"] == "raise" and not canvas.is_link(call.options):
        raise outage
    told.unguarded(call, outage, "enqueue")
    return call.send()


def _conflict(call: Outgoing, carried: Carried, refusal: LatchNotAcquired) -> Any:
    holder = refusal.holder or {}
    if holder.get("task_id") == call.task_id:
        return call.send()  # the same job, sent once more
    policy = call.guarded.flight.policies["enqueue"]
    if policy == "raise" and not canvas.is_link(call.options):
        raise refusal
    if policy == "rerun":
        return _rerun(call, carried, refusal)
    return _skipped(call, refusal, holder.get("task_id"), "not_sent")


def _rerun(call: Outgoing, carried: Carried, refusal: LatchNotAcquired) -> Any:
    flight, task = call.guarded.flight, call.task
    dump = getattr(task, "_dump_pydantic_arguments", None)
    args, kwargs = call.args or (), call.kwargs or {}
    if dump is not None:
        args, kwargs = dump(args, kwargs)
    payload = rerun.packed(task, args, kwargs, carried.made, call.options)
    live = rerun.live_seconds(flight, queue_seconds(task, {**call.options, "expires": None}, 0))
    try:
        slot = rerun.claim(str(carried.key), f"{call.task_id}:0:0", payload, live)
    except LatchUnavailable as outage:
        return _outage(call, outage)
    if slot.word == "merged":
        return _skipped(call, refusal, slot.job.partition(":")[0], "merged")
    carried.carries = slot.word == "carrier"
    return call.send()


def _skipped(call: Outgoing, refusal: LatchNotAcquired, instead: Any, reason: str) -> Any:
    """Say why nothing is sent, and return the result of the job that is there instead."""
    facts = told.facts(call, refusal, reason)
    extra = {"latch": {**facts, "instead": instead}}
    logger.info("%s: not sent, %s", call.name, refusal, extra=extra)
    signals.send(signals.task_skipped, **facts)
    if instead:
        return call.task.AsyncResult(instead)
    return EagerResult(call.task_id, call.guarded.flight.skip_value, "SUCCESS")
