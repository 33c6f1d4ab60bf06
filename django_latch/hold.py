"""What a holder knows of its hold without asking the store."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any, Final

from django.dispatch import Signal

from django_latch import native, signals
from django_latch.core import replies, verbs
from django_latch.core.calls import Call, StoreError
from django_latch.core.flow import Grant
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import fingerprint
from django_latch.exceptions import LatchLost, LatchNotHeld
from django_latch.heartbeat import heartbeat
from django_latch.store.base import Store

logger = logging.getLogger("django_latch")

#: Longest pause before a renewal that had no answer is sent again, in seconds.
RETRY: Final = 1.0


class Hold:
    """The state of a lease: its deadline on this process's clock, and how it ended.

    It is made before the lock is asked for, so that a waiter whose turn has come has less to do,
    and begins with the grant. The heartbeat's thread and the holder's own both come here; the
    mutex is never held across input or output.
    """

    #: Until when another process has kept it alive for this one, on the clock of `now`.
    kept_until: Callable[[], float] = staticmethod(float)

    #: What the lock's next run was to get, where this is the grant of the job that carries it.
    payload: str | None = None

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        ttl: float,
        renews: bool = True,
        max_hold: float | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.token = ""
        self.fence = 0
        self.ttl = ttl
        self.interval = ttl / 3
        self._max_hold = max_hold or float("inf")
        self._renews = renews
        self._reason: str | None = None
        self._owed = False  # its release is still to be sent, by the heartbeat
        self._trouble: StoreError | None = None
        self._mutex = native.allocate_rlock()
        self._ended: str | None = "never_held"  # until it begins; None while it is held

    @property
    def begun(self) -> bool:
        """Whether it was ever granted."""
        return self._ended != "never_held"

    def begin(self, grant: Grant) -> None:
        """It was granted: from now on it is held, and looked after."""
        begun = now()
        self._generation = heartbeat.generation  # not earlier: an exit or a fork changes it
        self.token = grant.token
        self.fence = grant.fence
        self.due = begun + self.interval
        self._deadline = grant.deadline
        self._hold_until = begun + self._max_hold
        self.payload = grant.payload
        self._ended = None
        if self._renews:
            heartbeat.add(self)

    def __repr__(self) -> str:
        state = self._ended or self.lost or f"{self.remaining():.1f} s left"
        return (
            f"<{type(self).__name__} {self.name!r} fence {self.fence} {self.fingerprint}: {state}>"
        )

    def __reduce__(self) -> str:
        # Neither copied nor pickled: only the lease that the heartbeat knows is renewed.
        raise TypeError(
            f"{self!r} belongs to this process: detach() it here and adopt() its token there"
        )

    @property
    def fingerprint(self) -> str:
        """First 8 hex digits of the token's SHA-256: names the lease without proving anything."""
        return fingerprint(self.token)

    # What can be said without asking the store

    def remaining(self) -> float:
        """Seconds until ownership could no longer be proved without a renewal; 0 if lost."""
        return 0.0 if self.lost or self._ended else max(self._until - now(), 0.0)

    @property
    def lost(self) -> str | None:
        """Why the lease was lost, or None while it is held and after release. Final once set."""
        if self._reason is None and self._ended is None:
            if self._generation != heartbeat.generation:
                return "never_held"  # a forked child owns nothing of its parent's
            if (time := now()) >= self._deadline and time >= self.kept_until():
                self._lose(self._why_late())
        return self._reason

    @property
    def _until(self) -> float:
        return max(self._deadline, self.kept_until())

    def ensure_held(self) -> None:
        """Go on only while ownership can be proved. No round trip.

        Raises:
            LatchLost: it can not; `reason` says why.
        """
        if reason := self.lost or self._ended:
            raise LatchLost(
                f"the lease on {self.name!r} is gone: {reason}", name=self.name, reason=reason
            )

    @property
    def held_here(self) -> bool:
        """Whether this process still holds it, as far as it can know."""
        return self.lost is None and self._ended is None

    def __del__(self) -> None:
        # Attributes may be missing where __init__ was interrupted.
        if (
            getattr(self, "_ended", "") is None
            and self._reason is None
            and self._generation == heartbeat.generation
        ):
            heartbeat.drop(self)
            if now() < self._deadline and not self._owed:
                warnings.warn(f"unreleased {self!r}; use `with`", ResourceWarning, 2, source=self)

    # Between the lease and its heartbeat

    def renewal(self, until: float | None = None) -> Call[replies.Renewed | replies.Ended]:
        """The call that renews; `until` as in `Call`."""
        ttl = max(min(self.ttl, self._hold_until - now()), 0.001)
        return verbs.renew(self.name, self.token, self.fence, ttl, until=until)

    def farewell(self, job: str = "", keep_job_for: float = 0) -> Call[replies.Closed]:
        """The call that releases; see `Lease.release`."""
        return verbs.end(
            self.name, self.token, "released", self.fence, job=job, keep_job_for=keep_job_for
        )

    def heard(self, outcome: object, sent: float) -> None:
        """Take in the outcome of a renewal.

        Parameters:
            outcome: the answer, or the error that stands for none.
            sent: the clock before the call went out.
        """
        match outcome:
            case replies.Renewed():
                with self._mutex:
                    # Read after the old deadline it comes too late: others may have held since.
                    if self._reason is None and now() < self._until:
                        self._deadline = max(self._deadline, deadline(sent, outcome.left))
                self._trouble = None
                self.due = min(sent + self.interval, self._deadline)
                if sent + self.interval >= self._hold_until:
                    self.due = self._deadline
            case replies.Ended():
                self._lose(outcome.reason)
            case StoreError():
                self._trouble = outcome
                self.due = min(now() + min(self.interval / 4, RETRY), self._deadline)
            case _:
                self._lose("missing")
                logger.error("%s", outcome)

    def _why_late(self) -> str:
        if not self._renews or now() >= self._hold_until:
            return "expired"
        if self._trouble is not None:
            return "unreachable"
        # Renewals were due and nothing went wrong with them: this process did not run.
        return "paused" if self.due <= self._deadline - self.interval / 2 else "expired"

    def _require_held(self) -> None:
        if reason := self.lost or self._ended:
            raise LatchNotHeld(
                f"this lease does not hold {self.name!r}: {reason}", name=self.name, reason=reason
            )

    def _stop(self, ended: str) -> None:
        with self._mutex:
            self._ended = ended
        heartbeat.drop(self)

    def _lose(self, reason: str) -> None:
        with self._mutex:
            if self._reason is not None or self._ended is not None:
                return  # said already; or an answer that met the running release
            self._reason = reason
        heartbeat.drop(self)
        logger.warning("the lease on %r (%s) was lost: %s", self.name, self.fingerprint, reason)
        self.tell(signals.lock_lost, reason=reason)

    def tell(self, signal: Signal, **facts: Any) -> None:
        """Send a signal about this lease."""
        if signal.receivers:
            mark = self.fingerprint
            signals.send(signal, name=self.name, fence=self.fence, fingerprint=mark, **facts)
