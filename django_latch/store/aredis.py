"""The lock store for asyncio: one per event loop, with the same scripts and replies.

A loop has two connections, however many tasks use it: the line, on which calls of all tasks
travel in shared pipelines, and, while any task waits, one that is blocked on the loop's wake
list. A task that is cancelled leaves its reply to the line, which reads and drops it, so no
reply is ever read by somebody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django_latch.core.calls import Call, Glance, Park, Watch
from django_latch.core.snapshot import Seen
from django_latch.core.timing import now
from django_latch.core.tokens import new_token
from django_latch.store import wire
from django_latch.store.aconnections import maker
from django_latch.store.errors import is_wrong_type, store_error
from django_latch.store.exchange import Exchange, WrongType, corrupt
from django_latch.store.line import Line
from django_latch.store.news import News
from django_latch.store.wakes import Wakes

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

T = TypeVar("T")


class AsyncRedisStore:
    """Runs the scripts for the tasks of one event loop.

    Parameters:
        make: makes an unconnected connection.
        exchange: packs calls and reads replies.
    """

    def __init__(self, make: Callable[[], AbstractConnection], exchange: Exchange) -> None:
        self.exchange = exchange
        self._line = Line(make)
        self._wake = new_token()[:16]
        self._wakes = Wakes(make, exchange.layout.wake_list(self._wake))
        self._news = News(make, exchange, self._wake, self._line.send)

    def wake_id(self) -> str:
        """The wake list of this loop; a message on it names the token it is for."""
        return self._wake

    async def call(self, call: Call[T]) -> T:
        """Run a script."""
        (reply,) = await self._line.send([self.exchange.packed(call)], call.until)
        if self.exchange.unknown([reply]):
            (reply,) = await self._line.send([self.exchange.packed(call, "EVAL")], call.until)
        try:
            return self.exchange.outcome(call, reply)
        except WrongType as error:
            asking = self.exchange.corrupt(call)
            command = next(asking)
            try:
                while True:
                    command = asking.send(await self.command(*command))
            except StopIteration as found:
                raise found.value from error

    async def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait for a wake message for this token, or until the slice ends; then run the call."""
        silent = await self._wakes.wait(park.token, max(park.until - now(), 0.0))
        return await self.call(park.call), silent

    async def glance(self, glance: Glance) -> Seen | None:
        """Read a snapshot's value, if it is fresh."""
        # Two replies to what is packed as one.
        replies = await self._line.send([self.exchange.glancing(glance), b""], glance.until)
        return self.exchange.glanced(glance, replies)

    async def watch(self, watch: Watch) -> Seen | None:
        """Wait for news of a snapshot, and glance at it."""
        left = max(watch.until - now(), 0.0)
        heard = await self._news.wait(watch.glance.name, watch.since, left)
        return await self.glance(watch.glance) if heard else None

    async def command(self, *args: str | int) -> Any:
        """Run one plain command that only reads, or that may be run twice."""
        (reply,) = await self._line.send([wire.command(len(args), wire.pack(args))], None)
        if not isinstance(reply, Exception):
            return reply
        if is_wrong_type(reply):
            raise corrupt(str(args[1]), "holds something else") from reply
        raise store_error(reply, sent=True) from reply


class AsyncStores:
    """The async twins of one sync store, one per event loop."""

    def __init__(
        self, connection_class: type[Any], kwargs: dict[str, Any], exchange: Exchange
    ) -> None:
        self._connection_class = connection_class
        self._kwargs = kwargs
        self._exchange = exchange
        self._stores: dict[asyncio.AbstractEventLoop, AsyncRedisStore] = {}

    def of_running_loop(self) -> AsyncRedisStore:
        """The store of the running loop; made at its first use there."""
        loop = asyncio.get_running_loop()
        store = self._stores.get(loop)
        if store is None:
            # They know their loop, so they would keep it alive.
            for other in [other for other in list(self._stores) if other.is_closed()]:
                self._stores.pop(other, None)
            make = maker(self._connection_class, self._kwargs)
            store = self._stores[loop] = AsyncRedisStore(make, self._exchange)
        return store
