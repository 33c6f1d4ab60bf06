"""The lease of whoever computes a snapshot, and how it ends: with a value, or without."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django_latch.core import snapshot
from django_latch.core.calls import Call, StoreError
from django_latch.core.flow import LEAVING, Flow, Grant
from django_latch.core.timing import now
from django_latch.exceptions import LatchCorrupt
from django_latch.lease import Lease

if TYPE_CHECKING:
    from django_latch.core.snapshot import Wanted
    from django_latch.store.base import Store

logger = logging.getLogger("django_latch")

#: Seconds that an election outlives its message, until a worker takes it.
QUEUED: Final = 60.0


class Refresh(Lease):
    """An election: the lease on a snapshot's lock, renewed while its holder computes.

    Parameters:
        permit: it is not the election but one of the permits to compute without it.
    """

    def __init__(self, store: Store, wanted: Wanted, grant: Grant, permit: str = "") -> None:
        super().__init__(store, permit or wanted.name, ttl=wanted.ttl, max_hold=wanted.max_hold)
        self.wanted = wanted
        self.permit = bool(permit)
        self._refused = False
        self.begin(grant)

    @property
    def refused(self) -> bool:
        """Whether the store has said that what is computed here is outdated."""
        return self._refused or self.lost in ("revoked", "superseded")

    def publishing(
        self, shapes: Mapping[str, bytes], took: float, fresh_for: float | None, deadline: float
    ) -> Flow[str]:
        """Publish, and free the lock in the same step.

        Returns:
            ``published``; ``superseded``: somebody else's is newer, or the lease was lost;
            ``unpublished``: the store did not take it.
        """
        if self.lost:
            return "superseded"
        token = "" if self.permit else self.token
        call = snapshot.publish(self.wanted, shapes, token, self.fence, took, fresh_for, deadline)
        if not self.permit:
            self._stop("released")
        try:
            try:
                done = yield call
            except StoreError as error:
                if not error.again:
                    raise
                done = yield call
        except (StoreError, LatchCorrupt) as error:
            logger.warning("%r was computed and not published: %s", self.wanted.name, error)
            yield from self.freeing()
            return "unpublished"
        except BaseException:
            self.free_soon()
            raise
        if self.permit:
            yield from self.freeing()
        self._refused = done.word != "published"
        return "superseded" if self._refused else "published"

    def failing(self, error: str) -> Flow[None]:
        """The compute failed: remembered with the next caller's election in mind."""
        token = "" if self.permit else self.token
        yield from self._ending(snapshot.fail(self.wanted.name, error, token, self.fence))
        if self.permit:
            yield from self.freeing()

    def freeing(self) -> Flow[None]:
        """Free the lock: nothing was published, and nothing failed."""
        yield from self._ending(self.farewell())

    def farewell(self, job: str = "", keep_job_for: float = 0) -> Call[Any]:
        """The call that frees the lock and wakes whoever waits."""
        if self.permit:
            return super().farewell(job, keep_job_for)
        return snapshot.fail(self.wanted.name, "", self.token, self.fence)

    def handing_over(self) -> Flow[str]:
        """Detach, for another process; returns the token.

        It must last until a worker takes the message, and a lost message costs as long.
        """
        self.ttl = min(max(self.ttl, QUEUED), self.wanted.max_hold)
        return (yield from self._detaching())

    def free_soon(self) -> None:
        """The same from the heartbeat's thread, where nothing can be sent any more."""
        self._stop("released")
        self._owe(self.farewell())

    def _ending(self, call: Call[Any]) -> Flow[None]:
        if self.lost:
            return
        self._stop("released")
        try:
            yield replace(call, until=now() + LEAVING)
        except (StoreError, LatchCorrupt):
            self._owe(call)
        except BaseException:
            self._owe(call)
            raise
