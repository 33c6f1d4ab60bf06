"""The news of snapshots for an event loop: one blocked connection for all its waiting tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from django_latch.core.calls import StoreError
from django_latch.core.replies import text
from django_latch.core.timing import milliseconds
from django_latch.store import wire
from django_latch.store.errors import store_error
from django_latch.store.line import at_loop_end, read

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

    from django_latch.store.exchange import Exchange

#: Seconds of one XREAD. When nobody waits any more it is not sent again.
BLOCK: Final = 2.0

#: What no snapshot is called: the listener's own stream, by which it is told to wait for more.
OWN: Final = "#"

Send = Callable[[Sequence[bytes], float | None], Awaitable[list[object]]]


class News:
    """Tells every task that waits for a snapshot when something is said about it.

    Parameters:
        make: makes an unconnected connection.
        exchange: knows the keys.
        loop: names the event loop among all that use the store.
        send: sends commands on a connection that is not blocked.
    """

    def __init__(
        self, make: Callable[[], AbstractConnection], exchange: Exchange, loop: str, send: Send
    ) -> None:
        self._connection = make()
        self._connection.socket_timeout = BLOCK + (self._connection.socket_timeout or BLOCK)
        self._exchange = exchange
        self._own = OWN + loop
        self._own_since = "0-0"
        self._send = send
        #: By name: what was known of its stream, and who waits.
        self._waiting: dict[str, tuple[str, set[asyncio.Future[None]]]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._keeper: AsyncGenerator[None] | None = None

    async def wait(self, name: str, since: str, seconds: float) -> bool:
        """Wait for news of `name`, at most so many seconds; whether there are any.

        Raises:
            StoreError: they cannot be heard.
        """
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        new = name not in self._waiting
        others = self._waiting.setdefault(name, (since, set()))[1]
        others.add(heard)
        try:
            async with asyncio.timeout(seconds):
                if self._listener is None or self._listener.done():
                    self._listener = asyncio.create_task(
                        self._listen(), name="django_latch-news", context=Context()
                    )
                elif new:
                    await self._call_out()
                await heard
                return True
        except TimeoutError:
            return False  # the slice has ended
        finally:
            others.discard(heard)
            if not others and self._waiting.get(name, ("", None))[1] is others:
                del self._waiting[name]
            if heard.done() and not heard.cancelled():
                heard.exception()  # seen, also where the slice ended in the same moment
            heard.cancel()

    async def _call_out(self) -> None:
        """End the listener's XREAD, so that it waits for one more."""
        key = self._exchange.layout.news(self._own)
        add = wire.command(7, wire.pack(("XADD", key, "MAXLEN", 1, "*", "at", "0")))
        expire = wire.command(3, wire.pack(("PEXPIRE", key, milliseconds(10 * BLOCK))))
        await self._send([add, expire], None)

    async def _listen(self) -> None:
        """Until nobody waits."""
        if self._keeper is None:
            self._keeper = await at_loop_end(self._close)
        connection = self._connection
        try:
            while self._waiting:
                streams = [(self._own, self._own_since)]
                streams += [(name, since) for name, (since, _) in self._waiting.items()]
                command = self._exchange.watching(streams, BLOCK)
                await connection.connect()
                await connection.send_packed_command(command)
                self._tell(await read(connection))
        except Exception as error:  # noqa: BLE001  told to those who wait
            await connection.disconnect(nowait=True)
            trouble = error if isinstance(error, StoreError) else store_error(error, sent=True)
            for _, tasks in self._waiting.values():
                for heard in tasks:
                    if not heard.done():
                        heard.set_exception(trouble)
        except BaseException:  # its XREAD is still under way
            await connection.disconnect(nowait=True)
            raise

    async def _close(self) -> None:
        if self._listener is not None and not self._listener.done():
            self._listener.cancel()
            await asyncio.wait([self._listener])
        await self._connection.disconnect()

    def _tell(self, reply: Any) -> None:
        if isinstance(reply, Exception):
            raise store_error(reply, sent=True) from reply
        streams = reply.items() if isinstance(reply, dict) else reply or []  # RESP3 and RESP2
        prefix = self._exchange.layout.news("")
        for key, entries in streams:
            name = text(key).removeprefix(prefix)
            if name == self._own:
                self._own_since = text(entries[-1][0])
            for heard in self._waiting.pop(name, ("", ()))[1]:
                if not heard.done():
                    heard.set_result(None)
