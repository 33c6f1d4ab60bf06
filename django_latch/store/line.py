"""One connection for the calls of all tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import redis.exceptions as redis_errors

from django_latch.core.calls import StoreError
from django_latch.core.timing import now
from django_latch.store.errors import store_error

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

Answer = asyncio.Future[list[object]]


class Line:
    """Sends what has gathered while the last answers were under way, in one pipeline.

    Parameters:
        make: makes an unconnected connection.
    """

    def __init__(self, make: Callable[[], AbstractConnection]) -> None:
        self._make = make
        self._outbox: list[tuple[Sequence[bytes], Answer]] = []
        self._filled = asyncio.Event()
        self._server: asyncio.Task[None] | None = None

    async def send(self, commands: Sequence[bytes], until: float | None) -> list[object]:
        """Send commands and wait for their replies, an error reply among them.

        Parameters:
            commands: packed.
            until: when the caller's time is spent; else the connection's time-out decides.
        """
        answer: Answer = asyncio.get_running_loop().create_future()
        self._outbox.append((commands, answer))
        self._filled.set()
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve(), name="django_latch-line")
        try:
            async with asyncio.timeout(None if until is None else max(until - now(), 0.001)):
                return await answer
        except TimeoutError:
            raise StoreError(
                "no answer in the time given", reason="spent", unanswered=True, again=False
            ) from None

    async def _serve(self) -> None:
        """Until the loop ends, which cancels its tasks: only then can the connection be closed."""
        connection = self._make()
        try:
            while True:
                await self._filled.wait()
                self._filled.clear()
                # Whoever was cancelled before their call went out has sent nothing.
                batch = [entry for entry in self._outbox if not entry[1].done()]
                self._outbox.clear()
                if batch:
                    await self._exchange(connection, batch)
        finally:
            await connection.disconnect(nowait=True)

    async def _exchange(
        self, connection: AbstractConnection, batch: list[tuple[Sequence[bytes], Answer]]
    ) -> None:
        sent = False
        try:
            await connection.connect()
            sent = True
            await connection.send_packed_command(b"".join(b"".join(part) for part, _ in batch))
            for commands, answer in batch:
                replies = [await read(connection) for _ in commands]
                if not answer.done():
                    answer.set_result(replies)
        except (redis_errors.RedisError, OSError, asyncio.CancelledError) as error:
            await connection.disconnect(nowait=True)
            for _, answer in batch:
                if answer.done():
                    continue
                if isinstance(error, asyncio.CancelledError):
                    answer.cancel()
                else:
                    answer.set_exception(store_error(error, sent=sent))
            if isinstance(error, asyncio.CancelledError):
                raise


async def read(connection: AbstractConnection) -> object:
    """Read one reply; an error reply is returned, a broken connection raises."""
    try:
        return await connection.read_response()
    except redis_errors.ConnectionError:  # among them BusyLoadingError, which is an answer too
        raise
    except redis_errors.ResponseError as error:
        return error
