"""What a caller gets when its time is spent, or when the store gives no answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_latch.core import flow, verbs
from django_latch.core.calls import Call, StoreError, Work
from django_latch.core.flow import Flow
from django_latch.core.names import fit_name
from django_latch.core.snapshot import Seen
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchTimeout, LatchUnavailable
from django_latch.heartbeat import heartbeat
from django_latch.snapshots.compute import Computing, check_computed, shapes
from django_latch.snapshots.refresh import Refresh
from django_latch.snapshots.results import FreshUntil, Pending, Report

if TYPE_CHECKING:
    from django_latch.snapshots.flow import Obtaining
    from django_latch.snapshots.place import Place


def out_of_time(call: Obtaining, seen: Seen | None) -> Flow[Report]:
    """Somebody else computes still, and the budget is spent: contention, never an outage."""
    place = call.place
    # A permit is no way round the pause after a failure, and needs an answer of the store as well.
    asks = seen is not None and seen.role != "failed"
    if place.options.on_busy == "compute" and asks:
        report = yield from _with_permit(call)
        if report is not None:
            return report
    if place.options.on_busy == "pending":
        value = Pending(place.label, retry_after(seen))
        return Report(
            name=place.label,
            state="miss",
            outcome="pending",
            value=value,
            waited=call.waited,
            refreshing=seen is not None and seen.role == "busy",
        )
    call.tell("timeout", waited=call.waited)
    raise late(place, seen, call.waited)


def late(place: Place, seen: Seen | None, waited: float) -> LatchTimeout:
    """Waited in vain."""
    if seen is None:
        why = "the store took longer than that to answer"
    elif seen.role == "failed":
        why = f"its last compute failed: {seen.error}"
    else:
        why = "another caller computes it"
    return LatchTimeout(
        f"no value of {place.label!r} in {waited:.1f} s: {why}",
        name=place.label,
        waited=round(waited, 3),
        reason="timeout",
        retry_after=retry_after(seen),
    )


def retry_after(seen: Seen | None) -> int:
    """In how many whole seconds asking again may help."""
    return max(math.ceil((seen.retry_in if seen else 0) / 1000), 1)


def _with_permit(call: Obtaining) -> Flow[Report | None]:
    """Compute beside whoever computes, with one of the fleet's few permits; None without."""
    place, wanted = call.place, call.wanted
    name = fit_name(f"{wanted.name}:permits")
    ask = verbs.Ask(name=name, ttl=wanted.ttl, owner=place.owner, limit=wanted.permits)
    store = place.store
    waited = call.waited

    def owe(what: Call[Any]) -> None:
        heartbeat.owe(store, what, max(wanted.ttl, 60.0))

    try:
        grant = yield from flow.acquire(ask, verbs.Caller(new_token()), owe)
    except (LatchNotAcquired, LatchUnavailable):
        return None
    try:
        lease = Refresh(store, wanted, grant, permit=name)
    except BaseException:
        owe(verbs.end(name, grant.token, "abandoned", grant.fence, resent=True))
        raise
    report = yield from Computing(place, call.compute, lease).run("busy")
    return replace(report, waited=waited)


def without_store(call: Obtaining, trouble: LatchError, cause: StoreError) -> Flow[Report]:
    """The store gives no usable answer."""
    place = call.place
    if isinstance(trouble, LatchUnavailable) and place.options.on_outage == "local":
        found = place.outage.last(place.wanted.name, place.wanted.shape, place.options.keep_for)
        if found is not None:
            raw, age, fresh_for = found
            return Report(
                name=place.label,
                state="hit" if fresh_for > 0 else "stale",
                outcome="outage",
                value=place.decode(raw),
                age=age,
                fresh_for=fresh_for,
                waited=call.waited,
                error=str(trouble),
            )
    if isinstance(trouble, LatchUnavailable) and place.options.on_outage == "compute":
        waited = call.waited
        made = yield Work(call.compute)
        check_computed(made)
        value = made.value if isinstance(made, FreshUntil) else made
        return Report(
            name=place.label,
            state="hit",
            outcome="outage",
            value=shapes(place, value)[place.wanted.shape],
            waited=waited,
            error=str(trouble),
        )
    call.tell("outage", waited=call.waited)
    raise trouble from cause
