"""What a snapshot answers with, beside the plain value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isnan
from typing import TYPE_CHECKING, Any

from django_latch.core.timing import FOREVER
from django_latch.exceptions import LatchValueError

if TYPE_CHECKING:
    from django_latch.core.snapshot import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A value and what is known of it. Seconds, by the server's clock.

    Attributes:
        name: as given, with the tenant if there is one.
        state: ``hit`` (fresh), ``stale``, or ``miss``: there is no value.
        outcome: how this call came by it: ``hit``, ``stale``, ``miss`` (computed here),
            ``takeover`` (computed here in place of a refresher that died), ``wait``, ``busy``
            (computed here with a permit), ``pending``, ``outage``, ``peek``.
        value: None where there is none, and where it is None.
        age: since it was published; 0 for one that was computed just now.
        fresh_for: until it is stale; negative for a stale one.
        took: its compute.
        fence: of its publication; 0 where it was not published.
        waited: how long this call took, its own compute not counted.
        refreshing: somebody is computing the next one.
        failures: computes that failed since then, one after the other.
        error: the last one's type and message.
        retry_in: until it is computed again after a failure.
    """

    name: str
    state: str
    outcome: str
    value: Any
    age: float = 0.0
    fresh_for: float = 0.0
    took: float = 0.0
    fence: int = 0
    waited: float = 0.0
    refreshing: bool = False
    failures: int = 0
    error: str = ""
    retry_in: float = 0.0

    @classmethod
    def of(cls, name: str, seen: Seen, outcome: str, value: Any, waited: float = 0.0) -> Report:
        """What was read."""
        return cls(
            name=name,
            state=seen.state,
            outcome=outcome,
            value=value,
            age=seen.age / 1000,
            fresh_for=seen.left / 1000,
            took=seen.took / 1000,
            fence=seen.fence,
            waited=waited,
            refreshing=seen.role == "busy",
            failures=seen.failures,
            error=seen.error,
            retry_in=seen.retry_in / 1000,
        )


@dataclass(frozen=True, slots=True)
class Pending:
    """In place of a value with ``on_busy="pending"``: it is being computed, ask again later.

    Attributes:
        name: of the snapshot.
        retry_after: seconds, a whole number of at least 1, as the HTTP header has it.
    """

    name: str
    retry_after: int = 1

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class FreshUntil:
    """Returned by a compute: a value with a deadline that shortens its freshness.

    Parameters:
        value: what the callers get.
        deadline: an aware datetime, or seconds (or a timedelta) from its publication.
    """

    value: Any
    deadline: datetime | timedelta | float

    def limits(self) -> tuple[float | None, float]:
        """Seconds of freshness, or None; and the deadline in seconds since the epoch, or 0.

        Raises:
            LatchValueError: it is no deadline.
        """
        at = self.deadline
        if isinstance(at, datetime):
            if at.tzinfo is None:
                raise LatchValueError(
                    f"the deadline of a value must be an aware datetime, not {at!r}; "
                    f"give it a tzinfo, or seconds"
                )
            end = at.timestamp()
            if end > time.time() + FOREVER:  # limits nothing
                return None, 0.0
            return None, max(end, 0.001)
        seconds = at.total_seconds() if isinstance(at, timedelta) else at
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or isnan(seconds):
            raise LatchValueError(
                f"the deadline of a value must be an aware datetime or seconds, not {at!r:.80}"
            )
        return max(float(min(seconds, FOREVER)), 0.001), 0.0
