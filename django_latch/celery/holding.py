"""Take a run's lock and give it back, whatever interrupts in between."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from django_latch.celery import queued
from django_latch.celery.header import RUN
from django_latch.celery.kept import kept_until
from django_latch.core.errors import outage
from django_latch.core.owner import Owner
from django_latch.core.tokens import fingerprint, new_token
from django_latch.current import as_current
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchNotHeld, LatchUnavailable
from django_latch.locks import Latch, Lease

if TYPE_CHECKING:
    from django_latch.celery.job import Job

logger = logging.getLogger("django_latch")


class Holding:
    """The lock of one run.

    Mostly one; see `Job.copy_lock` for when there are two. The token exists before it is sent
    anywhere, so whatever interrupts the acquire (a soft time limit, the SystemExit of a shutdown),
    `release` can still end what the server granted.

    Parameters:
        job: the call that is about to run.
    """

    #: Set when the job has come to an end of its own, so that another copy of its message must
    #: not run it again.
    finished = False

    #: Kept beyond the end of the run, for a retry that Celery may be about to send.
    parked = False

    #: What the run is to get instead of its own arguments, where it is the lock's next run.
    payload: str | None = None

    def __init__(self, job: Job) -> None:
        # The worker's main process made the token, so that it can tell the store of our death.
        token = job.request.get(RUN) if job.from_message else None
        self._job = job
        self._token: str = token or new_token()
        self._queued = job.carried.token if job.carried and job.from_message else None
        self._leases: dict[str, Lease] = {}
        self._handed: str | None = None
        self._asking: str | None = None
        self._asked = False

    @property
    def held(self) -> bool:
        """Whether the run has what it needs, and has not given it back yet."""
        return self._asked and self._asking is None

    @property
    def lease(self) -> Lease | None:
        """The lease of the key's lock; None where there is none."""
        return self._leases.get(self._job.key)

    def acquire(self) -> LatchNotAcquired | LatchUnavailable | None:
        """Take the lock.

        Returns:
            None with the lock held; otherwise the refusal or the outage, as a value: an error of
            the same kind that the task's own code raises must never be taken for it.
        """
        self._asked = True
        try:
            self._take_all()
        except (LatchNotAcquired, LatchUnavailable) as error:
            refusal = outage(error)
            if isinstance(refusal, LatchUnavailable) and self._asking and self._queued:
                queued.owe(self._asking, self._token)  # an adoption may be under way
            # What was sent with the message stays with it: the message may be sent again.
            self._asking = self._queued = None
            self._release_all()
            self._asked = False
            return refusal
        return None

    def as_current(self) -> AbstractContextManager[Lease | None]:
        """Let `current_lease` say this lease in the body; nothing where there is none."""
        return nullcontext() if self.lease is None else as_current(self.lease)

    def release(self) -> None:
        """Give the lock back; quiet if that is done or was never needed.

        Never raises an error of ours: the task's own result or exception stands.
        """
        if self._asked:
            self._release_all()
            self._asked = False

    def hand_over(self, seconds: float) -> str | None:
        """Leave the key's lock to the message of a retry, and give back what else is held.

        Parameters:
            seconds: how long that message may be under way.

        Returns:
            The secret for the message; None where nothing is held (any more).
        """
        lease = self._leases.pop(self._job.key, None)
        if lease is not None:
            limit = self._job.flight.limit
            try:
                self._handed = queued.hand_over(lease, seconds, limit, self._owner())
            except LatchError as error:
                self._warn(lease.name, error)
        self.release()
        return self._handed

    def take_back(self) -> None:
        """Free what was handed over: the message could not be sent."""
        queued.give_back(self._job.key, self._handed)
        self._handed = None

    def _take_all(self) -> None:
        job = self._job
        if job.copy_lock is not None:
            self._take(
                Latch.exact(job.copy_lock, ttl=job.flight.ttl, timeout=0, owner=self._owner())
            )
        if job.flight.at != "enqueue":
            self._take_key(self._latch())
        elif job.carries:
            self._take_key(self._latch())  # what the next run is to get is told with the grant
            self._give_back(self._leases[job.key])
            del self._leases[job.key]
        else:
            queued.give_back(job.key, self._queued)
        self._queued = None

    def _take_key(self, latch: Latch) -> None:
        if self._queued is None:
            return self._take(latch, self._job.flight.hold_seconds)
        self._asking = latch.name
        job, least = self._job, self._job.flight.hold_seconds
        try:
            lease = latch.adopt(
                self._queued, into=self._token, remember=job.remember_for, min_hold=least
            )
        except LatchNotHeld:  # it expired in the queue, or a copy was faster: ask as anybody
            return self._take(latch, least)
        self._took(lease)

    def _take(self, latch: Latch, min_hold: float = 0) -> None:
        self._asking = latch.name
        lease = latch.acquire(token=self._token, job=self._job.identity, min_hold=min_hold)
        self._took(lease)

    def _took(self, lease: Lease) -> None:
        self._leases[lease.name], self._asking = lease, None
        self.payload = lease.payload
        if self._job.flight.parent_heartbeat and self._job.from_message:
            lease.kept_until = partial(kept_until, self._token)

    def _release_all(self) -> None:
        while self._leases:
            name = next(reversed(self._leases))
            self._give_back(self._leases[name])
            del self._leases[name]
        if self._asking is not None:  # interrupted, or without an answer
            queued.give_back(self._asking, self._token)
            self._asking = None
        if self._queued is not None:  # interrupted before it was taken over for certain
            queued.give_back(self._job.key, self._queued)
            self._queued = None

    def _give_back(self, lease: Lease) -> None:
        job = self._job
        try:
            lease.release(
                finished_job=job.identity if self.finished else None,
                keep_job_for=job.remember_for if self.finished else 0,
            )
        except LatchError as error:
            self._warn(lease.name, error)

    def _latch(self) -> Latch:
        flight = self._job.flight
        waits = flight.policies.get("run") == "wait"
        timeout = flight.timeout if waits else 0
        return Latch.exact(
            self._job.key,
            ttl=flight.ttl,
            timeout=timeout,
            limit=flight.limit,
            owner=self._owner(),
        )

    def _owner(self) -> Owner:
        return self._job.owner(run=fingerprint(self._token))

    def _warn(self, name: str, error: LatchError) -> None:
        logger.warning("%s: could not give back the lock %s: %s", self._job.name, name, error)
