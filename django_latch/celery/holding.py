"""Take a run's lock and give it back, whatever interrupts in between."""

from __future__ import annotations

import logging
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from django_latch.celery import queued
from django_latch.celery.header import RUN
from django_latch.celery.kept import kept_until
from django_latch.core.errors import outage
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchNotHeld, LatchUnavailable
from django_latch.heartbeat import heartbeat
from django_latch.locks import Latch, Lease

if TYPE_CHECKING:
    from datetime import timedelta

    from django_latch.celery.job import Job
    from django_latch.celery.options import SingleFlight

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
        self._generation = heartbeat.generation

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

    def release(self) -> None:
        """Give the lock back; quiet if that is done or was never needed.

        Never raises an error of ours: the task's own result or exception stands.
        """
        if self._asked and self._is_here:
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
                self._handed = queued.hand_over(lease, seconds, limit, self._job.record(runs=False))
            except LatchError as error:
                self._warn(lease.name, error)
        self.release()
        return self._handed

    def take_back(self) -> None:
        """Free what was handed over: the message could not be sent."""
        if self._is_here:
            queued.give_back(self._job.key, self._handed)
            self._handed = None

    @property
    def _is_here(self) -> bool:
        """Whether this is the process that took it, and no child of it."""
        return self._generation == heartbeat.generation

    def _take_all(self) -> None:
        job = self._job
        if job.copy_lock is not None:
            self._take(job.copy_lock, _copies(job.flight.ttl))
        if job.flight.at != "enqueue":
            self._take_key()
        elif job.carries:
            self._take_key()  # what the next run is to get is told with the grant
            self._give_back(self._leases[job.key])
            del self._leases[job.key]
        else:
            queued.give_back(job.key, self._queued)
        self._queued = None

    def _take_key(self) -> None:
        flight = self._job.flight
        self._take(self._job.key, _latch(flight), self._queued, flight.hold_seconds)

    def _take(
        self, name: str, latch: Latch, queued: str | None = None, min_hold: float = 0
    ) -> None:
        job, ask = self._job, latch.ask_for(name, self._job.record(runs=True))
        # Other jobs have no copies, and carry no next run.
        known = job.identity if job.remember_for or job.flight.reruns else None
        self._asking = name
        if queued is None:
            lease = latch.acquire(token=self._token, job=known, min_hold=min_hold, ask=ask)
        else:
            try:
                lease = latch.adopt(
                    queued,
                    into=self._token,
                    remember=job.remember_for,
                    min_hold=min_hold,
                    ask=ask,
                )
            except LatchNotHeld:  # it expired in the queue, or a copy was faster: ask as anybody
                lease = latch.acquire(token=self._token, job=known, min_hold=min_hold, ask=ask)
        self._leases[name], self._asking = lease, None
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
        keep = job.remember_for if self.finished else 0
        try:
            lease.release(finished_job=job.identity if keep else None, keep_job_for=keep)
        except LatchError as error:
            self._warn(lease.name, error)

    def _warn(self, name: str, error: LatchError) -> None:
        logger.warning("%s: could not give back the lock %s: %s", self._job.name, name, error)


@lru_cache(maxsize=256)
def _latch(flight: SingleFlight) -> Latch:
    """A latch with these options, for any lock."""
    timeout = flight.timeout if flight.policies.get("run") == "wait" else 0
    return Latch.exact("run", ttl=flight.ttl, timeout=timeout, limit=flight.limit)


@lru_cache(maxsize=256)
def _copies(ttl: float | timedelta | None) -> Latch:
    """A latch for the locks that keep the copies of one job apart."""
    return Latch.exact("copies", ttl=ttl, timeout=0)
