"""One connection for the calls of all tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextvars import Context
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
        self._connection = make()
        self._outbox: list[tuple[Sequence[bytes], Answer]] = []
        self._server: asyncio.Task[None] | None = None
        self._keeper: AsyncGenerator[None] | None = None

    async def send(self, commands: Sequence[bytes], until: float | None) -> list[object]:
        """Send commands and wait for their replies, an error reply among them.

        Parameters:
            commands: packed.
            until: when the caller's time is spent; else the connection's time-out decides.
        """
        answer: Answer = asyncio.get_running_loop().create_future()
        self._outbox.append((commands, answer))
        self._start()
        try:
            async with asyncio.timeout(None if until is None else max(until - now(), 0.001)):
                return await answer
        except TimeoutError:
            raise StoreError(
                "no answer in the time given", reason="spent", unanswered=True, again=False
            ) from None

    def _start(self, ended: asyncio.Task[None] | None = None) -> None:
        if self._outbox and (self._server is None or self._server.done()):
            self._server = asyncio.create_task(
                self._serve(), name="django_latch-line", context=Context()
            )
            # Whatever ends it, such as a loop that cancels all its tasks: those that are being
            # cancelled still have something to say, and wait for the answer.
            self._server.add_done_callback(self._start)

    async def _serve(self) -> None:
        """Until nothing is left to be sent."""
        if self._keeper is None:
            self._keeper = await at_loop_end(self._connection.disconnect)
        while self._outbox:
            # Whoever was cancelled before their call went out has sent nothing.
            batch = [entry for entry in self._outbox if not entry[1].done()]
            self._outbox.clear()
            if batch:
                await self._exchange(batch)

    async def _exchange(self, batch: list[tuple[Sequence[bytes], Answer]]) -> None:
        connection, sent = self._connection, False
        try:
            await connection.connect()
            sent = True
            await connection.send_packed_command(b"".join(b"".join(part) for part, _ in batch))
            for commands, answer in batch:
                replies = [await read(connection) for _ in commands]
                if not answer.done():
                    answer.set_result(replies)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(_trouble(error, sent))
            if not isinstance(error, (redis_errors.RedisError, OSError)):
                raise


def _trouble(error: BaseException, sent: bool) -> StoreError:
    if isinstance(error, Exception):
        return store_error(error, sent=sent)
    return StoreError("interrupted", reason="connection", unanswered=sent, again=True)


async def at_loop_end(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Have `close` called when the running loop ends, after the last of its tasks.

    Returns:
        What must be kept until then.
    """
    keeper = _until_closed(close)
    await anext(keeper)  # from now on the loop knows it, and closes it in shutdown_asyncgens()
    return keeper


async def _until_closed(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await close()


async def read(connection: AbstractConnection) -> object:
    """Read one reply; an error reply is returned, a broken connection raises."""
    try:
        return await connection.read_response()
    except redis_errors.ConnectionError:  # among them BusyLoadingError, which is an answer too
        raise
    except redis_errors.ResponseError as error:
        return error
