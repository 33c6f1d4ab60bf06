"""Several locks at once: all or nothing, in one order for everybody, so never in a deadlock."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from django_latch.conf import conf
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.flow import Flow, Grant
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchError, LatchNotAcquired, LatchValueError
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.lease import Lease, may_block
from django_latch.store import drive

if TYPE_CHECKING:
    from django_latch.locks import Latch
    from django_latch.store.base import AsyncStore, Store

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

    async def arelease(self) -> None:
        """The async twin of `release`."""
        await drive.run(self._releasing(), self._leases[0].store.twin())

    def _releasing(self) -> Flow[None]:
        yield from _each(lease._releasing() for lease in reversed(self._leases))

    def leaving(self, error: BaseException | None) -> Flow[None]:
        """Release at the end of a block."""
        yield from _each(lease._leaving(error) for lease in reversed(self._leases))


def _each(flows: Iterator[Flow[None]]) -> Flow[None]:
    """Run all of them, and raise the first error afterwards."""
    first: LatchError | None = None
    for flow in flows:
        try:
            yield from flow
        except LatchError as error:
            first = first or error
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
        self._entered: list[MultiLease] = []

    def acquire(self) -> MultiLease:
        """Take all of them, or none.

        Raises:
            LatchBusy, LatchTimeout, LatchQueueFull: `name` says which was not to be had.
            LatchUnavailable: no answer.
        """
        if self._first._ask(conf.load()).timeout:
            may_block()
        store = self._first._store()
        return drive.sync(self._acquiring(store, store), store)

    async def aacquire(self) -> MultiLease:
        """The async twin of `acquire`."""
        store = self._first._store()
        twin = store.twin()
        return await drive.run(self._acquiring(store, twin), twin)

    def try_acquire(self) -> MultiLease | None:
        """All of them, or None."""
        with suppress(LatchNotAcquired):
            return self.acquire()
        return None

    def _acquiring(self, store: Store, asking: Store | AsyncStore) -> Flow[MultiLease]:
        begun, timeout = now(), self._first._ask(conf.load()).timeout
        leases = yield from self._all_at_once(store)
        if leases is None:
            leases = {}
            try:
                # One order for everybody: whoever holds an early name never waits for a later
                # holder of it.
                for latch in sorted(self._latches, key=lambda latch: latch._ask(conf.load()).name):
                    ask = latch._ask(conf.load())
                    left = max(timeout - (now() - begun), 0.001) if timeout else 0
                    ask = replace(ask, timeout=left)
                    leases[latch.name] = yield from latch._acquiring(ask, store, asking)
            except BaseException:
                for lease in leases.values():
                    lease.release_soon()
                raise
        return MultiLease(self.names, [leases[name] for name in self.names])

    def _all_at_once(self, store: Store) -> Flow[dict[str, Lease] | None]:
        """All of them by one script, or None where one is not free."""
        asks = [latch._ask(conf.load()) for latch in self._latches]
        tokens = [new_token() for _ in asks]
        owe = functools.partial(heartbeats.owe, store, seconds=max(conf.grace, asks[0].ttl))
        call = verbs.many(asks[0], [ask.name for ask in asks], tokens)
        sent = now()
        try:
            answer = yield call
        except BaseException as error:
            for ask, token in zip(asks, tokens, strict=True):
                owe(verbs.end(ask.name, token, "abandoned", resent=True))
            if isinstance(error, StoreError) and error.again:
                return None  # key by key finds out whether the store is there
            raise
        if isinstance(answer, str):
            return None
        left, fences = answer
        leases = {}
        for latch, ask, token, fence in zip(self._latches, asks, tokens, fences, strict=True):
            grant = Grant(token, fence, deadline(sent, left), 0.0)
            leases[latch.name] = latch._lease(store, ask.name, grant, ask.ttl)
        return leases

    def __enter__(self) -> MultiLease:
        self._entered.append(self.acquire())
        return self._entered[-1]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        leases = self._entered.pop()
        drive.sync(leases.leaving(error), leases[0].store)

    async def __aenter__(self) -> MultiLease:
        self._entered.append(await self.aacquire())
        return self._entered[-1]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        leases = self._entered.pop()
        await drive.run(leases.leaving(error), leases[0].store.twin())
