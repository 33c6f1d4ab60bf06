"""Take a run's lock and give it back, whatever interrupts in between."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from django_latch.celery.header import RUN
from django_latch.core.tokens import fingerprint, new_token
from django_latch.current import as_current
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchUnavailable
from django_latch.locks import Latch, Lease

if TYPE_CHECKING:
    from django_latch.celery.job import Job

logger = logging.getLogger("django_latch")


class Holding:
    """The lock of one run.

    The token exists before it is sent anywhere, so whatever interrupts the acquire (a soft time
    limit, the SystemExit of a shutdown), `release` can still end what the server granted.

    Parameters:
        job: the call that is about to run.
    """

    #: Set when the job has come to an end of its own, so that another copy of its message must
    #: not run it again.
    finished = False

    def __init__(self, job: Job) -> None:
        # The worker's main process made the token, so that it can tell the store of our death.
        token = job.request.get(RUN) if job.from_message else None
        self._job = job
        self._token: str = token or new_token()
        self._lease: Lease | None = None
        self._asked = False
        owner = job.owner(run=fingerprint(self._token))
        self._latch = Latch.exact(job.key, ttl=job.flight.ttl, timeout=0, owner=owner)

    @property
    def held(self) -> bool:
        """Whether the lock was granted and not given back yet."""
        return self._asked and self._lease is not None

    def acquire(self) -> LatchNotAcquired | LatchUnavailable | None:
        """Take the lock.

        Returns:
            None with the lock held; otherwise the refusal or the outage, as a value: an error of
            the same kind that the task's own code raises must never be taken for it.
        """
        self._asked = True
        try:
            self._lease = self._acquire()
        except (LatchNotAcquired, LatchUnavailable) as refusal:
            self._asked = False
            return refusal
        return None

    def as_current(self) -> AbstractContextManager[Lease | None]:
        """Let `current_lease` say this lease in the body; nothing where there is none."""
        return nullcontext() if self._lease is None else as_current(self._lease)

    def release(self) -> None:
        """Give the lock back; quiet if that is done or was never needed.

        Never raises an error of ours: the task's own result or exception stands.
        """
        if not self._asked:
            return
        job = self._job
        try:
            lease = self._lease or self._acquire()  # interrupted: the same token, so no new grant
            lease.release(
                finished_job=job.identity if self.finished else None,
                keep_job_for=job.remember_for if self.finished else 0,
            )
        except LatchError as error:
            logger.warning("%s: could not give back the lock %s: %s", job.name, job.key, error)
        self._asked = False

    def _acquire(self) -> Lease:
        job = self._job
        return self._latch.acquire(
            token=self._token, job=job.identity, min_hold=job.flight.hold_seconds
        )
