"""One acquisition of a lock, as its holder sees it."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import TracebackType
from typing import Any

from django.utils.asyncio import async_unsafe

from django_latch import signals, transactions
from django_latch.core import flow, verbs
from django_latch.core.calls import Call
from django_latch.core.flow import Flow
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchError
from django_latch.heartbeat import heartbeat
from django_latch.hold import Hold
from django_latch.store import drive

logger = logging.getLogger("django_latch")


class Lease(Hold):
    """One acquisition of a lock. Made by a `Latch`; a context manager that releases at its end.

    Attributes:
        name: the lock's name in the store.
        fence: a number that only grows from one holder to the next; the resource being protected
            can refuse whoever comes with a smaller one.
        ttl: the lease in seconds; renewed every third of it unless `heartbeat=False`.
        token: the secret that proves ownership. Never shown; `fingerprint` is.
    """

    #: Who holds it, as `Owner.to_json` writes it; empty: this process and nothing more.
    record = ""

    def renew(self) -> None:
        """Reset the lease to its full `ttl`. Never shortens it.

        Raises:
            LatchNotHeld: it is not held any more; `reason` says why.
            LatchUnavailable: no answer; the lease goes on until its deadline.
        """
        drive.sync(self._renewing(), self.store)

    async def arenew(self) -> None:
        """The async twin of `renew`."""
        await drive.run(self._renewing(), self.store.twin())

    def _renewing(self) -> Flow[None]:
        self._require_held()
        reply, sent = yield from flow.twice(self.renewal())
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
        drive.sync(self._releasing(finished_job or "", keep_job_for), self.store)
        transactions.warn_if_open(self.name)

    async def arelease(self) -> None:
        """The async twin of `release`."""
        await drive.run(self._releasing(), self.store.twin())
        transactions.warn_if_open(self.name)

    def _releasing(self, job: str = "", keep_job_for: float = 0) -> Flow[None]:
        if self._ended is not None:
            return
        self._require_held()
        call = self.farewell(job, keep_job_for)
        try:
            self._stop("released")
            closed = yield from flow.end(call, self._owe)
        except LatchError:
            self._ended = None  # may be called again: the token is not forgotten
            raise
        except BaseException:
            # Interrupted before it was sent: nobody looks after the lease any more.
            if self._ended is not None and not self._owed:
                self._owe(verbs.resent(call))
            raise
        if closed.reason != "released":
            self._ended = None
            self._lose(closed.reason)
            self._require_held()
        if closed.offered:
            heartbeat.nudge(self.store, self.name, closed.offered)
        self.tell(signals.lock_released, held_for=closed.held_for / 1000)

    def detach(self) -> str:
        """Hand the lock over: no renewal and no release by this process from now on.

        Returns:
            The token, for `Latch.adopt` in another process within the lease's time.

        Raises:
            LatchNotHeld: the lease is lost.
            LatchUnavailable: no answer; the lease is still this process's.
        """
        return drive.sync(self._detaching(), self.store)

    async def adetach(self) -> str:
        """The async twin of `detach`."""
        return await drive.run(self._detaching(), self.store.twin())

    def _detaching(self) -> Flow[str]:
        self._require_held()
        # Nobody may conclude from this process's death that the lock is free, nor from what it
        # waits for that it waits for itself.
        was = Owner.from_json(self.record) if self.record else Owner.here()
        nobody = replace(was, pid=0, started=0, boot_id="", pid_ns="", agent="")
        call = verbs.renew(self.name, self.token, self.fence, self.ttl, nobody.to_json())
        reply, sent = yield from flow.twice(call)
        self.heard(reply, sent)
        self._require_held()
        return self.leave()

    def leave(self) -> str:
        """Look after the lease no longer, without a word to the store.

        Unlike `detach`, for a record that names no process, or a token that another has now.

        Returns:
            The token.
        """
        self._stop("adopted")
        return self.token

    # with

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        drive.sync(self._leaving(error), self.store)

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if isinstance(error, GeneratorExit):  # a coroutine that is being closed can await nothing
            self.release_soon()
        else:
            await drive.run(self._leaving(error), self.store.twin())

    def _leaving(self, error: BaseException | None) -> Flow[None]:
        """Release at the end of a block; an error of ours never masks the block's own."""
        if self._ended is not None or self._generation != heartbeat.generation:
            return
        try:
            if error is None:
                self.ensure_held()
            if self.at_commit and transactions.is_open():
                transactions.at_end(self)
                return
            yield from self._releasing()
        except LatchError as trouble:
            if error is None:
                raise
            logger.warning("%r was not released: %s", self.name, trouble)
        if error is None:
            transactions.warn_if_open(self.name)  # after it, for a warning may be an error

    #: Release when the open transaction ends, not at the end of the block.
    at_commit = False

    def _owe(self, call: Call[Any]) -> None:
        self._owed = True
        heartbeat.owe(self.store, call, self.ttl)

    def release_soon(self) -> None:
        """Release from the heartbeat's thread; for where no input or output may happen."""
        if self.held_here:
            self._stop("released")
            self._owe(self.farewell())


@async_unsafe(
    "what may wait blocks the event loop; use the async twin, or timeout=0 (a snapshot: wait=0)"
)
def may_block() -> None:
    """Raise SynchronousOnlyOperation inside a running event loop, as Django's ORM does."""
