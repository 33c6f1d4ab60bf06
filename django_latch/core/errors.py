"""Answers as errors: the facts a caller needs, in words and as attributes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django_latch.core import replies
from django_latch.core.calls import StoreError
from django_latch.core.deadlock import Link
from django_latch.core.verbs import Ask
from django_latch.exceptions import (
    LatchBusy,
    LatchDeadlock,
    LatchError,
    LatchNotAcquired,
    LatchQueueFull,
    LatchTimeout,
    LatchUnavailable,
)


class JobFinished(LatchNotAcquired):
    """The job that asks has finished already: this is another copy of its message."""


#: The last moment that has a date, in milliseconds.
LAST: Final = 253_402_300_799_999


def moment(ms: int) -> datetime:
    """A moment of the server's clock; the last one for what no clock can have said."""
    return datetime.fromtimestamp(min(ms, LAST) / 1000, UTC)


def _facts(ask: Ask, held: replies.Held, waited: float = 0.0) -> dict[str, Any]:
    """What is known of the holder, as plain JSON values."""
    facts: dict[str, Any] = {"name": ask.name, "waited": round(waited, 3)}
    if held.left >= 0:
        facts["ttl_remaining"] = held.left / 1000
        facts["holder"] = {
            **held.owner.as_dict(),
            "fence": held.fence,
            "since": moment(held.since).isoformat(),
        }
    return facts


def _by(held: replies.Held) -> str:
    if held.left < 0:
        return ""
    return f" by {held.owner.describe()}, {held.left / 1000:.1f} s left"


def busy(ask: Ask, held: replies.Held) -> LatchBusy:
    """One try, and it is held."""
    return LatchBusy(f"{ask.name!r} is held{_by(held)}", _facts(ask, held), reason="busy")


def full(ask: Ask, held: replies.Held) -> LatchQueueFull:
    """Too many wait already."""
    return LatchQueueFull(
        f"{ask.name!r} has {ask.max_waiters} waiters already, the most allowed",
        _facts(ask, held),
        reason="full",
    )


def timeout(ask: Ask, place: replies.Queued, waited: float) -> LatchTimeout:
    """Waited in vain."""
    return LatchTimeout(
        f"waited {waited:.1f} s for {ask.name!r}, held{_by(place.held)}; {place.ahead} ahead",
        _facts(ask, place.held, waited),
        position=place.ahead + 1,
        reason="timeout",
    )


def deadlock(
    ask: Ask, place: replies.Queued, circle: Sequence[Link], waited: float
) -> LatchDeadlock:
    """The holders wait for each other, and this caller gives way."""
    steps = "; ".join(
        f"{link.agent} holds {link.holds!r}, waits for {link.waits!r}" for link in circle
    )
    return LatchDeadlock(
        f"waiting for {ask.name!r} would never end: {steps}",
        _facts(ask, place.held, waited),
        cycle=[link.as_dict() for link in circle],
        reason="deadlock",
    )


def ended(ask: Ask, reply: replies.Ended, waited: float) -> LatchNotAcquired:
    """Refused for good: cleared by an operator, or the job has finished."""
    facts = {"name": ask.name, "reason": reply.reason, "waited": round(waited, 3)}
    if reply.reason == "finished":
        return JobFinished(f"{ask.name!r}: this job has finished already", facts)
    if reply.reason == "revoked":
        return LatchNotAcquired(f"{ask.name!r}: this request was cleared by an operator", facts)
    return LatchNotAcquired(
        f"{ask.name!r}: the token has served an acquisition already ({reply.reason}); "
        "take a fresh one for each",
        facts,
    )


def outage(error: LatchNotAcquired | LatchUnavailable) -> LatchNotAcquired | LatchUnavailable:
    """The same error; an outage where the time was spent without an answer."""
    if isinstance(error, LatchNotAcquired) and error.unanswered:
        return LatchUnavailable(str(error), name=error.name, waited=error.waited, reason="timeout")
    return error


def unavailable(name: str, error: StoreError, waited: float = 0.0) -> LatchError:
    """No answer: an outage, unless only the caller's own time was spent."""
    if error.reason == "spent":
        return LatchTimeout(
            f"no answer about {name!r} in the {waited:.1f} s given",
            name=name,
            waited=waited,
            reason="unreachable",
        )
    hint = {
        "auth": "; check the user name, password and rights of the cache alias",
        "oom": "; the server's memory is full",
    }.get(error.reason, "")
    about = f" about {name!r}" if name else ""
    return LatchUnavailable(
        f"the lock store gave no usable answer{about} ({error}){hint}",
        name=name,
        reason=error.reason,
        waited=round(waited, 3),
    )
