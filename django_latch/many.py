"""Several locks at once: all or nothing, in one order for everybody, so never in a deadlock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from django_latch import signals, transactions
from django_latch.conf import conf
from django_latch.core import flow, verbs
from django_latch.core.calls import StoreError
from django_latch.core.flow import Flow, Grant
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import new_token
from django_latch.current import Entries
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchValueError
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.lease import Lease, may_block
from django_latch.store import drive

if TYPE_CHECKING:
    from django_latch.locks import Latch
    from django_latch.store.base import AsyncStore, Store

logger = logging.getLogger("django_latch")

#: Most locks taken together: one script looks at each of them.
MOST = 100


class MultiLease(Sequence[Lease]):
    """The leases of several locks, in the order in which they were named.

    Indexed by position; `by_name` maps each name as it was given to its lease.
    """

    def __init__(self, names: Sequence[str], leases: Sequence[Lease]) -> None:
        self._leases = tuple(leases)
        self.by_name = dict(zip(names, leases, strict=True))

    def __getitem__(self, at: Any) -> Any:
        return self._leases[at]

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def lost(self) -> str | None:
        """Why the first lost one was lost, or None while all are held."""
        return next((lease.lost for lease in self._leases if lease.lost), None)

    def ensure_held(self) -> None:
        """Raise LatchLost unless all can still be proved to be held. No round trip."""
        for lease in self._leases:
            lease.ensure_held()

    def release(self) -> None:
        """Give all of them back; an error of one, raised at the end, keeps none of the others."""
        drive.sync(self._releasing(), self._leases[0].store)
        transactions.warn_if_open(self._leases[0].name)

    async def arelease(self) -> None:
        """The async twin of `release`."""
        await drive.run(self._releasing(), self._leases[0].store.twin())
        transactions.warn_if_open(self._leases[0].name)

    def _releasing(self) -> Flow[None]:
        yield from _each(self._leases, Lease._releasing)

    def leaving(self, error: BaseException | None) -> Flow[None]:
        """Release at the end of a block."""
        yield from _each(self._leases, lambda lease: lease._leaving(error))


def _each(leases: Sequence[Lease], give_back: Callable[[Lease], Flow[None]]) -> Flow[None]:
    """Give all of them back, the last first, and raise the first error afterwards."""
    first: Exception | None = None
    try:
        for lease in reversed(leases):
            try:
                yield from give_back(lease)
            except (LatchError, Warning) as error:
                first = first or error
    except BaseException:  # interrupted, among them by an event loop that ends
        for lease in leases:
            lease.release_soon()
        raise
    if first is not None:
        raise first


class ManyLatch:
    """Several locks, taken together; made by `Latch.many`."""

    def __init__(self, latches: Sequence[Latch]) -> None:
        self.names = [latch.name for latch in latches]
        if not latches or len(latches) > MOST or len(set(self.names)) < len(latches):
            raise LatchValueError(
                f"many() takes 1 to {MOST} different names, not {self.names!r:.200}"
            )
        self._latches = latches
        self._first = latches[0]
        self._entries: Entries[MultiLease] = Entries()

    def acquire(self) -> MultiLease:
        """Take all of them, or none.

        Raises:
            LatchBusy, LatchTimeout, LatchQueueFull: `name` says which was not to be had.
            LatchUnavailable: no answer.
        """
        if self._first._ask(conf.load()).timeout:
            may_block()
        store = self._first._store(conf.load())
        return drive.sync(self._acquiring(store, store), store)

    async def aacquire(self) -> MultiLease:
        """The async twin of `acquire`."""
        store = self._first._store(conf.load())
        twin = store.twin()
        return await drive.run(self._acquiring(store, twin), twin)

    def try_acquire(self) -> MultiLease | None:
        """All of them, or None; raises as `Latch.try_acquire` does."""
        try:
            return self.acquire()
        except LatchNotAcquired as refusal:
            if refusal.unanswered:
                raise
            return None

    async def atry_acquire(self) -> MultiLease | None:
        """The async twin of `try_acquire`."""
        try:
            return await self.aacquire()
        except LatchNotAcquired as refusal:
            if refusal.unanswered:
                raise
            return None

    def _acquiring(self, store: Store, asking: Store | AsyncStore) -> Flow[MultiLease]:
        timeout = self._first._ask(conf.load()).timeout
        until = now() + timeout if timeout else None
        leases: dict[str, Lease] = {}
        try:
            free = yield from self._all_at_once(store, leases, until)
            if not free:
                leases.clear()
                yield from self._one_by_one(store, asking, leases, until)
        except BaseException as error:
            yield from _undo(list(leases.values()), error)
            raise
        return MultiLease(self.names, [leases[name] for name in self.names])

    def _all_at_once(
        self, store: Store, leases: dict[str, Lease], until: float | None
    ) -> Flow[bool]:
        """Take all of them by one script; False where one is not free."""
        asks = [latch._ask(conf.load()) for latch in self._latches]
        tokens = [new_token() for _ in asks]
        call = verbs.many(asks[0], [ask.name for ask in asks], tokens, until)
        for latch, ask in zip(self._latches, asks, strict=True):
            leases[latch.name] = latch._lease(store, ask)
        try:
            answer, sent = yield from flow.twice(call)
            if isinstance(answer, str):
                return False
            left, fences = answer
            end = deadline(sent, left)
            grants = [Grant(*told, end, 0.0) for told in zip(tokens, fences, strict=True)]
            for lease, grant in zip(leases.values(), grants, strict=True):
                lease.begin(grant)
        except BaseException:  # what has begun is the caller's to undo
            for lease, ask, token in zip(leases.values(), asks, tokens, strict=True):
                if not lease.begun:
                    abandon = verbs.end(ask.name, token, "abandoned", resent=True)
                    heartbeats.owe(store, abandon, max(ask.grace, ask.ttl))
            raise
        for lease, grant in zip(leases.values(), grants, strict=True):
            signals.acquired(lease.name, grant, lease.ttl)
        return True

    def _one_by_one(
        self,
        store: Store,
        asking: Store | AsyncStore,
        leases: dict[str, Lease],
        until: float | None,
    ) -> Flow[None]:
        """Take them in one order for everybody.

        Whoever holds an early name never waits for a later holder of it.
        """
        for latch in sorted(self._latches, key=lambda latch: latch._ask(conf.load()).name):
            left = 0 if until is None else max(until - now(), 0.001)
            ask = replace(latch._ask(conf.load()), timeout=left)
            leases[latch.name] = yield from latch._acquiring(ask, store, asking)

    def __enter__(self) -> MultiLease:
        self._first._check_with()
        leases = self.acquire()
        self._entries.add(leases)
        return leases

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        leases = self._entries.pop()
        drive.sync(leases.leaving(error), leases[0].store)

    async def __aenter__(self) -> MultiLease:
        self._first._check_with()
        leases = await self.aacquire()
        self._entries.add(leases)
        return leases

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        leases = self._entries.pop()
        if isinstance(error, GeneratorExit):  # a coroutine that is being closed can await nothing
            for lease in leases:
                lease.release_soon()
        else:
            await drive.run(leases.leaving(error), leases[0].store.twin())


def _undo(leases: Sequence[Lease], error: BaseException) -> Flow[None]:
    """Give back what was taken before `error`; at once, if that was a refusal."""
    try:
        if isinstance(error, LatchNotAcquired) and not isinstance(error.__cause__, StoreError):
            yield from _each(leases, Lease._releasing)
    except LatchError as trouble:
        logger.warning("%s", trouble)
    finally:
        for lease in leases:
            lease.release_soon()
