"""One acquisition of a lock, as its holder sees it."""

from __future__ import annotations

import logging
import warnings
from types import TracebackType
from typing import Any, Final

from django.dispatch import Signal

from django_latch import native, signals
from django_latch.core import flow, replies, verbs
from django_latch.core.calls import Call, StoreError
from django_latch.core.flow import Grant
from django_latch.core.owner import Owner
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import fingerprint
from django_latch.exceptions import LatchError, LatchLost, LatchNotHeld
from django_latch.heartbeat import heartbeat
from django_latch.store import drive
from django_latch.store.base import Store

logger = logging.getLogger("django_latch")

#: Longest pause before a renewal that had no answer is sent again, in seconds.
RETRY: Final = 1.0


class Lease:
    """One acquisition of a lock. Made by a `Latch`; a context manager that releases at its end.

    Attributes:
        name: the lock's name in the store.
        fence: a number that only grows from one holder to the next; the resource being protected
            can refuse whoever comes with a smaller one.
        ttl: the lease in seconds; renewed every third of it unless `heartbeat=False`.
        token: the secret that proves ownership. Never shown; `fingerprint` is.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        grant: Grant,
        *,
        ttl: float,
        owner: Owner | None = None,
        renews: bool = True,
        max_hold: float | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.token = grant.token
        self.fence = grant.fence
        self.ttl = ttl
        self.interval = ttl / 3
        self.due = now() + self.interval
        self._owner = owner
        self._deadline = grant.deadline
        self._hold_until = now() + max_hold if max_hold else float("inf")
        self._renews = renews
        self._generation = heartbeat.generation
        self._reason: str | None = None
        self._ended: str | None = None
        self._trouble: StoreError | None = None
        self._mutex = native.allocate_lock()
        if renews:
            heartbeat.add(self)

    def __repr__(self) -> str:
        state = self._ended or self.lost or f"{self.remaining():.1f} s left"
        return f"<Lease {self.name!r} fence {self.fence} {self.fingerprint}: {state}>"

    @property
    def fingerprint(self) -> str:
        """First 8 hex digits of the token's SHA-256: names the lease without proving anything."""
        return fingerprint(self.token)

    # What can be said without asking the store

    def remaining(self) -> float:
        """Seconds until ownership could no longer be proved without a renewal; 0 if lost."""
        return 0.0 if self.lost or self._ended else max(self._deadline - now(), 0.0)

    @property
    def lost(self) -> str | None:
        """Why the lease was lost, or None while it is held and after release. Final once set."""
        if self._reason is None and self._ended is None:
            if self._generation != heartbeat.generation:
                return "never_held"  # a forked child owns nothing of its parent's
            if now() >= self._deadline:
                self._lose(self._why_late())
        return self._reason

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

    # Renewal and release

    def renew(self) -> None:
        """Reset the lease to its full `ttl`. Never shortens it.

        Raises:
            LatchNotHeld: it is not held any more; `reason` says why.
            LatchUnavailable: no answer; the lease goes on until its deadline.
        """
        self._require_held()
        reply, sent = drive.sync(flow.renew(self.renewal()), self.store)
        self.heard(reply, sent)
        self._require_held()

    def release(self, *, finished_job: str | None = None, keep_job_for: float = 0) -> None:
        """Give the lock back. Quiet if that has happened already.

        Parameters:
            finished_job, keep_job_for: remember in the store, for so many seconds, that this job
                has finished; see `Latch.acquire`.

        Raises:
            LatchNotHeld: the lease was lost before; `reason` says why. Whoever holds the lock
                now is unharmed.
            LatchUnavailable: no answer. The lock is not renewed any more, and the release is
                sent again in the background until the lease has passed.
        """
        if self._ended is not None:
            return
        self._require_held()
        self._stop("released")
        call = verbs.end(
            self.name,
            self.token,
            "released",
            self.fence,
            job=finished_job or "",
            keep_job_for=keep_job_for,
        )
        try:
            closed = drive.sync(flow.end(call, self._owe), self.store)
        except BaseException:
            self._ended = None  # may be called again: the token is not forgotten
            raise
        if closed.reason != "released":
            self._ended = None
            self._lose(closed.reason)
            self._require_held()
        self.tell(signals.lock_released, held_for=closed.held_for / 1000)

    def detach(self) -> str:
        """Hand the lock over: no renewal and no release by this process from now on.

        Returns:
            The token, for `Latch.adopt` in another process within the lease's time.

        Raises:
            LatchNotHeld: the lease is lost.
            LatchUnavailable: no answer; the lease is still this process's.
        """
        self._require_held()
        # Nobody may conclude from this process's death that the lock is free.
        was = self._owner or Owner.here()
        nobody = Owner(label=was.label, task=was.task, host=was.host)
        call = verbs.renew(self.name, self.token, self.fence, self.ttl, nobody.to_json())
        reply, sent = drive.sync(flow.renew(call), self.store)
        self.heard(reply, sent)
        self._require_held()
        self._stop("adopted")
        return self.token

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._generation != heartbeat.generation or self._ended is not None:
            return
        try:
            if error is None:
                self.ensure_held()
            self.release()
        except LatchError as trouble:
            if error is None:
                raise
            logger.warning("%r was not released: %s", self.name, trouble)

    def __del__(self) -> None:
        # Attributes may be missing where __init__ was interrupted.
        if (
            getattr(self, "_ended", "") is None
            and self._reason is None
            and self._generation == heartbeat.generation
        ):
            heartbeat.drop(self.token)
            if now() < self._deadline:
                warnings.warn(f"unreleased {self!r}; use `with`", ResourceWarning, 2, source=self)

    # Between the lease and its heartbeat

    def renewal(self, until: float | None = None) -> Call[replies.Renewed | replies.Ended]:
        """The call that renews; `until` as in `Call`."""
        ttl = max(min(self.ttl, self._hold_until - now()), 0.001)
        return verbs.renew(self.name, self.token, self.fence, ttl, until=until)

    def farewell(self) -> Call[replies.Closed]:
        """The call that releases at exit."""
        self._stop("released")
        return verbs.end(self.name, self.token, "released", self.fence)

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
                    if self._reason is None and now() < self._deadline:
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

    def _owe(self, call: Call[Any]) -> None:
        heartbeat.owe(self.store, call, self.ttl)

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
        heartbeat.drop(self.token)

    def _lose(self, reason: str) -> None:
        with self._mutex:
            if self._reason is not None or self._ended is not None:
                return  # said already; or an answer that met the running release
            self._reason = reason
        heartbeat.drop(self.token)
        logger.warning("the lease on %r (%s) was lost: %s", self.name, self.fingerprint, reason)
        self.tell(signals.lock_lost, reason=reason)

    def tell(self, signal: Signal, **facts: Any) -> None:
        """Send a signal about this lease."""
        if signal.receivers:
            mark = self.fingerprint
            signals.send(signal, name=self.name, fence=self.fence, fingerprint=mark, **facts)
