"""What is locked now, read from the store; and freeing it safely.

Used by the admin, the commands and the HTTP API. Nothing here reads or writes the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from django_latch import signals
from django_latch.core import flow, replies, verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import moment, unavailable
from django_latch.core.owner import Owner
from django_latch.core.tokens import fingerprint as mark
from django_latch.exceptions import LatchNotHeld
from django_latch.store import drive
from django_latch.store.base import Store
from django_latch.store.connections import store

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderInfo:
    """One lease of a lock. Times of the server's clock; durations in seconds."""

    state: str  # held, offered (to a waiter) or cooling (kept taken by min_hold)
    fence: int
    fingerprint: str
    owner: Owner
    acquired_at: datetime
    expires_at: datetime
    held_for: float
    expires_in: float
    ttl: float
    limit: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values."""
        return {
            "state": self.state,
            "fence": self.fence,
            "fingerprint": self.fingerprint,
            "owner": self.owner.as_dict(),
            "acquired_at": self.acquired_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
            "held_for": round(self.held_for, 3),
            "expires_in": round(self.expires_in, 3),
            "ttl": self.ttl,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LockInfo:
    """A lock: who holds it, and how many wait."""

    name: str
    holders: tuple[HolderInfo, ...]
    waiters: int

    @property
    def holder(self) -> HolderInfo | None:
        """The holder; the one with the lowest fence where there are several."""
        return self.holders[0] if self.holders else None

    @property
    def limit(self) -> int:
        """How many may hold it at once, as its holders see it."""
        return min((holder.limit for holder in self.holders), default=1)

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values; never a token."""
        return {
            "name": self.name,
            "holders": [holder.as_dict() for holder in self.holders],
            "waiters": self.waiters,
            "limit": self.limit,
        }


def count(*, using: str | None = None) -> int:
    """How many locks the index lists. One round trip."""
    return _answered("", store(using).call, verbs.count())


def page(
    offset: int, limit: int, *, reverse: bool = False, using: str | None = None
) -> list[LockInfo]:
    """A part of the list by expiry. Two round trips, whatever the size.

    A lock that ended between the two is left out, so a page may be shorter than `limit`.
    """
    at = store(using)
    if limit < 1:
        return []
    last = offset + limit - 1
    return _read(at, _answered("", at.call, verbs.names(offset, last, reverse=reverse)))


def counted_page(
    offset: int, limit: int, *, reverse: bool = False, using: str | None = None
) -> tuple[int, list[LockInfo]]:
    """`count` and `page` together, in two round trips."""
    at = store(using)
    asked = [verbs.count(), verbs.names(offset, offset + limit - 1, reverse=reverse)]
    outcomes = _answered("", at.pipeline, asked)
    for outcome in outcomes:
        if isinstance(outcome, StoreError):
            raise unavailable("", outcome) from outcome
    total, names = outcomes
    return total, _read(at, names)


def scan(maximum: int = 10_000, *, using: str | None = None) -> tuple[list[LockInfo], bool]:
    """All locks, at most `maximum`; and whether there were more."""
    at = store(using)
    names = _answered("", at.call, verbs.names(0, maximum))
    return _read(at, names[:maximum]), len(names) > maximum


def get(name: str, *, using: str | None = None) -> LockInfo | None:
    """One lock; None where it is free and nobody waits."""
    found = several([name], using=using)
    return found[0] if found else None


def several(names: Iterable[str], *, using: str | None = None) -> list[LockInfo]:
    """The locks of these names, without those that are free. One round trip."""
    return _read(store(using), names)


def clear(
    name: str, *, fence: int, fingerprint: str, reason: str, actor: str, using: str | None = None
) -> None:
    """Free a lock from one certain holder, whoever that is by then.

    Parameters:
        fence, fingerprint: of the lease that is meant; another one is left alone.
        reason, actor: why and by whom, for the event.

    Raises:
        LatchNotHeld: that lease does not hold the lock (any more).
        LatchUnavailable, LatchCorrupt: nothing was freed, as far as is known.
    """
    at = store(using)
    drive.sync(clearing(name, fence, fingerprint, reason, actor), at)


def clearing(name: str, fence: int, fingerprint: str, reason: str, actor: str) -> flow.Flow[None]:
    """The steps of `clear`, for sync and async stores."""
    listing, _ = yield from flow.twice(verbs.read(name))
    meant = (fence, fingerprint)
    holder = next((h for h in listing.holders if (h.fence, mark(h.token)) == meant), None)
    if holder is None:
        raise LatchNotHeld(
            f"{name!r} is not held by the lease {fingerprint} (fence {fence}) any more",
            name=name,
            reason="taken",
        )
    note = f"{actor}: {reason}"[:1000]
    call = verbs.end(name, holder.token, "revoked", fence, resent=True, note=note)
    closed, _ = yield from flow.twice(call)
    if closed.reason != "revoked":
        raise LatchNotHeld(
            f"{name!r}: that lease had ended by itself: {closed.reason}",
            name=name,
            reason=closed.reason,
        )
    signals.send(
        signals.lock_force_released,
        name=name,
        fence=fence,
        fingerprint=fingerprint,
        actor=actor,
        reason=reason,
    )


def _read(at: Store, names: Iterable[str]) -> list[LockInfo]:
    """The locks of that name that are held or waited for, in one round trip."""
    names = list(names)
    outcomes = _answered("", at.pipeline, [verbs.read(name) for name in names]) if names else []
    locks = (lock_info(name, outcome) for name, outcome in zip(names, outcomes, strict=True))
    return [lock for lock in locks if lock is not None]


def lock_info(name: str, outcome: replies.Listing | Exception) -> LockInfo | None:
    """A lock as read; None where it is free and nobody waits."""
    if isinstance(outcome, StoreError):
        raise unavailable(name, outcome) from outcome
    if isinstance(outcome, Exception):  # a key of a wrong type hurts only its own lock
        broken = Owner(label=f"unreadable: {outcome}")
        outcome = replies.Listing(0, 0, (replies.Holder("", "corrupt", 0, 0, 0, 1, 0, broken),))
    if not outcome.holders and not outcome.waiters:
        return None
    holders = sorted((_holder(outcome.now, h) for h in outcome.holders), key=lambda h: h.fence)
    return LockInfo(name=name, holders=tuple(holders), waiters=outcome.waiters)


def _holder(now: int, holder: replies.Holder) -> HolderInfo:
    return HolderInfo(
        state=holder.state,
        fence=holder.fence,
        fingerprint=mark(holder.token),
        owner=holder.owner,
        acquired_at=moment(holder.since),
        expires_at=moment(holder.exp),
        held_for=max(now - holder.since, 0) / 1000,
        expires_in=max(holder.exp - now, 0) / 1000,
        ttl=holder.lease / 1000,
        limit=holder.limit,
    )


def _answered(name: str, send: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `send` returns; no answer is LatchUnavailable."""
    try:
        return send(*args, **kwargs)
    except StoreError as error:
        raise unavailable(name, error) from error
