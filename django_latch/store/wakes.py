"""The wake messages of an event loop: one blocked connection for all its waiting tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextvars import Context
from typing import TYPE_CHECKING, Final

import redis.exceptions as redis_errors

from django_latch.core.replies import text
from django_latch.store import wire
from django_latch.store.errors import store_error
from django_latch.store.exchange import silent_fence
from django_latch.store.line import at_loop_end, read

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

#: Seconds of one BLPOP. When nobody waits any more it is not sent again.
BLOCK: Final = 2

#: Seconds before a broken connection is tried again; meanwhile the slices' own polls serve.
PAUSE: Final = 0.2

#: Most messages kept for tasks that are just polling.
EARLY: Final = 10_000


class Wakes:
    """Hands each message to the tasks that wait with the token it names.

    Parameters:
        make: makes an unconnected connection.
        wake_list: the key.
    """

    def __init__(self, make: Callable[[], AbstractConnection], wake_list: str) -> None:
        self._connection = make()
        self._connection.socket_timeout = BLOCK + (self._connection.socket_timeout or BLOCK)
        self._command = wire.command(3, wire.pack(("BLPOP", wake_list, BLOCK)))
        # Several of one token: a request over HTTP that was sent again while the first one waits.
        self._expected: dict[str, list[asyncio.Future[int]]] = {}
        self._early: dict[str, int] = {}
        self._listener: asyncio.Task[None] | None = None
        self._keeper: AsyncGenerator[None] | None = None

    async def wait(self, token: str, seconds: float) -> int:
        """Wait for a message for `token`, at most so many seconds.

        Returns:
            The fence it names beside the token, else 0.
        """
        if token in self._early:  # it came while the caller was polling
            return self._early.pop(token)
        woken: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = self._expected.setdefault(token, [])
        waiting.append(woken)
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(
                self._listen(), name="django_latch-wakes", context=Context()
            )
        try:
            await asyncio.wait([woken], timeout=seconds)
            return woken.result() if woken.done() else 0
        finally:
            waiting.remove(woken)
            if not waiting:
                del self._expected[token]
            woken.cancel()

    async def _listen(self) -> None:
        """Until nobody waits."""
        if self._keeper is None:
            self._keeper = await at_loop_end(self._close)
        connection = self._connection
        try:
            while self._expected:
                try:
                    await connection.connect()
                    await connection.send_packed_command(self._command)
                    self._deliver(await read(connection))
                except (redis_errors.RedisError, OSError):
                    # A message is only a hint: each task asks for itself at its slice's end.
                    await connection.disconnect(nowait=True)
                    await asyncio.sleep(PAUSE)
        except BaseException:  # its BLPOP is still under way
            await connection.disconnect(nowait=True)
            raise

    async def _close(self) -> None:
        if self._listener is not None and not self._listener.done():
            self._listener.cancel()
            await asyncio.wait([self._listener])
        await self._connection.disconnect()

    def _deliver(self, reply: object) -> None:
        if reply is None:
            return
        if not isinstance(reply, list):  # an error, such as a key of a wrong type
            raise redis_errors.ConnectionError(str(store_error(Exception(str(reply)), sent=True)))
        token = text(reply[1]).partition(" ")[0]
        if token not in self._expected:
            self._early[token] = silent_fence(reply)
            while len(self._early) > EARLY:
                del self._early[next(iter(self._early))]
        for woken in self._expected.get(token, ()):
            if not woken.done():
                woken.set_result(silent_fence(reply))
