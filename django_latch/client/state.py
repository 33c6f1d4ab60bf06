"""What a lease of the client knows without asking the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django_latch.client.steps import Flow, Granted, renewing
from django_latch.core.timing import now
from django_latch.exceptions import LatchError, LatchLost, LatchNotHeld, LatchUnavailable

logger = logging.getLogger("django_latch")


class Held:
    """One lease over HTTP.

    Attributes:
        key: the lock.
        fence: a number that only grows from one holder to the next.
        token: the secret; never shown.
        ttl: seconds.
        waited: seconds until it was granted.
    """

    def __init__(self, key: str, wanted: Mapping[str, Any], granted: Granted) -> None:
        self.key = key
        self.token: str = wanted["token"]
        self.ttl: float = wanted["ttl"]
        self.fence = granted.fence
        self.waited = granted.waited
        self._deadline = granted.deadline
        self._trouble = False
        self._reason: str | None = None
        self._lost_at = 0.0
        self._ended_at: float | None = None

    def __repr__(self) -> str:
        state = self.lost or f"{self.remaining():.1f} s left"
        return f"<{type(self).__name__} {self.key!r} fence {self.fence}: {state}>"

    def remaining(self) -> float:
        """Seconds until ownership could no longer be proved without a renewal; 0 if lost."""
        return 0.0 if self.lost or self._ended_at else max(self._deadline - now(), 0.0)

    @property
    def lost(self) -> str | None:
        """Why the lease was lost, or None. Final once set; known without a request."""
        if self._reason is None and self._ended_at is None and now() >= self._deadline:
            self._lose("unreachable" if self._trouble else "expired", self._deadline)
        return self._reason

    @property
    def overrun(self) -> float:
        """Seconds for which the work went on after the lease was lost."""
        if self.lost is None:
            return 0.0
        return max((self._ended_at or now()) - self._lost_at, 0.0)

    def ensure_held(self) -> None:
        """Go on only while ownership can be proved. No request.

        Raises:
            LatchLost: it can not; `reason` says why.
        """
        reason = self.lost or ("released" if self._ended_at else None)
        if reason:
            raise LatchLost(
                f"the lease on {self.key!r} is gone: {reason}", name=self.key, reason=reason
            )

    def _renewing(self) -> Flow[float]:
        return renewing(self.key, self.token, self.ttl, self.fence)

    def _lose(self, reason: str, at: float) -> None:
        self._reason, self._lost_at = reason, at
        logger.warning("the lease on %r was lost: %s", self.key, reason)

    def _heard(self, outcome: float | LatchError) -> float:
        """Take in the outcome of a renewal; seconds until the next one, 0 for none."""
        if self.lost or self._ended_at:
            return 0.0  # an answer after the deadline brings nothing back
        match outcome:
            case LatchNotHeld():
                self._lose(outcome.reason or "missing", now())
                return 0.0
            case LatchError():
                self._trouble = isinstance(outcome, LatchUnavailable)
                logger.warning("the lease on %r could not be renewed: %s", self.key, outcome)
                return self.ttl / 12
        self._trouble = False
        self._deadline = max(self._deadline, outcome)
        return self.ttl / 3

    def _end(self) -> None:
        if self._ended_at is None:
            self._ended_at = now()
