"""What is kept of all snapshots, for lists; the values themselves are not read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django_latch.core import snapshot as calls
from django_latch.core.calls import StoreError
from django_latch.core.errors import unavailable
from django_latch.core.snapshot import Seen
from django_latch.store.connections import store

#: How the states of a value are called in lists.
STATES = {"hit": "fresh", "stale": "stale", "miss": "none"}

#: The lock of a snapshot; whatever else somebody has put into the list is none of ours.
_LOCK: Final = re.compile(r"snapshot:\d+:.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInfo:
    """A snapshot as it is kept. Seconds, by the server's clock.

    Attributes:
        name: as given, with the tenant if there is one.
        version: the VERSION of the cache alias.
        lock: the lock of whoever computes.
        state: ``fresh``, ``stale`` or ``none``; ``corrupt`` where it cannot be read.
        age: since the value was published, or None.
        fresh_for: until it is stale; negative for a stale one; None without a value.
        took: its compute, or None.
        fence: of its publication; 0 without a value.
        refreshing: somebody is computing the next one.
        failures, error: computes that failed since then, and the last one's type and message.
        retry_in: until it is computed again after a failure.
    """

    name: str
    version: str
    lock: str
    state: str
    age: float | None = None
    fresh_for: float | None = None
    took: float | None = None
    fence: int = 0
    refreshing: bool = False
    failures: int = 0
    error: str = ""
    retry_in: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values."""
        return {name: getattr(self, name) for name in self.__slots__}


def listed(limit: int, *, using: str | None = None) -> list[SnapshotInfo]:
    """The snapshots of which anything is kept, the first to end first, at most `limit`.

    Two round trips, whatever the size.

    Raises:
        LatchUnavailable, LatchCorrupt: the list itself cannot be read.
    """
    at = store(using)
    try:
        names = [name for name in at.call(calls.names(0, limit)) if _LOCK.match(name)]
        found = at.pipeline([calls.facts(name) for name in names]) if names else []
    except StoreError as error:
        raise unavailable("", error) from error
    every = [_info(name, seen) for name, seen in zip(names, found, strict=True)]
    return [one for one in every if one.state != "none" or one.failures or one.refreshing]


def _info(lock: str, seen: Seen | Exception) -> SnapshotInfo:
    _, version, name = lock.split(":", 2)
    if isinstance(seen, StoreError):
        raise unavailable(lock, seen) from seen
    if isinstance(seen, Exception):  # a key of a wrong type hurts only its own row
        return SnapshotInfo(name=name, version=version, lock=lock, state="corrupt", error=str(seen))
    valued = seen.state != "miss"
    return SnapshotInfo(
        name=name,
        version=version,
        lock=lock,
        state=STATES[seen.state],
        age=seen.age / 1000 if valued else None,
        fresh_for=seen.left / 1000 if valued else None,
        took=seen.took / 1000 if valued else None,
        fence=seen.fence,
        refreshing=seen.role == "busy",
        failures=seen.failures,
        error=seen.error,
        retry_in=seen.retry_in / 1000,
    )
