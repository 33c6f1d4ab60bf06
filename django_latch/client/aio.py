"""The async client: the same flows, awaited."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from django_latch.client import steps
from django_latch.client.blocking import reply_of
from django_latch.client.state import Held, logger
from django_latch.client.wanted import Options, headers, wanted
from django_latch.exceptions import LatchError

T = TypeVar("T")


class AsyncRemoteLease(Held):
    """A lease; renewed by a task of its own until it is released or lost."""

    _task: asyncio.Task[None] | None = None

    def start(self, client: AsyncLatchClient, renew: bool) -> None:
        """Begin to renew it."""
        self._client = client
        if renew:
            renewals = _renew(weakref.ref(self), self.ttl / 3)
            self._task = asyncio.create_task(renewals, name="latch-renewal")

    async def renew_once(self) -> float:
        """Renew in the background. Returns seconds until the next time; 0 for never."""
        try:
            return self._heard(await self._client.run(self._renewing()))
        except LatchError as error:
            return self._heard(error)

    async def renew(self) -> None:
        """The async twin of `RemoteLease.renew`."""
        self.ensure_held()
        try:
            self._heard(await self._client.run(self._renewing()))
        except LatchError as error:
            self._heard(error)
            raise
        self.ensure_held()

    async def release(self) -> None:
        """The async twin of `RemoteLease.release`."""
        self._stop()
        if self._ended_at is None:
            self._end()
            body = {"token": self.token}
            request = steps.Request("POST", steps.path(self.key, "/release"), body)
            await self._client.run(steps.asking(request))

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Release; raise LatchLost if the body ran on without the lock."""
        reason = self.lost
        try:
            if reason is None:
                await self.release()
        except LatchError as trouble:
            if error is None:
                raise
            logger.warning("%r was not released: %s", self.key, trouble)
        finally:
            self._stop()
            self._end()
        if reason and error is None:
            self.ensure_held()


async def _renew(lease: weakref.ref[AsyncRemoteLease], pause: float) -> None:
    """Until the lease ends, or nobody knows it any more."""
    while pause:
        await asyncio.sleep(pause)
        held = lease()
        pause = await held.renew_once() if held else 0.0
        del held


class AsyncLatchClient:
    """The async twin of `LatchClient`, for one event loop."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = 5.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._patience = patience
        self._http = httpx.AsyncClient(base_url=url, headers=headers(token), transport=transport)

    @asynccontextmanager
    async def lock(self, key: str, **options: Any) -> AsyncGenerator[AsyncRemoteLease]:
        """Hold a lock for the body of an `async with`; see `LatchClient.acquire`."""
        async with await self.acquire(key, **options) as lease:
            yield lease

    async def acquire(self, key: str, **options: Any) -> AsyncRemoteLease:
        """The async twin of `LatchClient.acquire`."""
        asked = Options(**options)
        body = wanted(asked)
        lease = AsyncRemoteLease(key, body, await self.run(steps.acquiring(key, body)))
        lease.start(self, asked.renew)
        return lease

    async def inspect(self, key: str) -> Mapping[str, Any]:
        """What is known of a lock; never a token."""
        return await self.run(steps.asking(steps.Request("GET", steps.path(key))))

    async def force(self, key: str, reason: str) -> Mapping[str, Any]:
        """Free a lock from whoever holds it; needs the right, and is audited."""
        body = {"force": True, "reason": reason}
        request = steps.Request("POST", steps.path(key, "/release"), body)
        return await self.run(steps.asking(request))

    async def run(self, flow: steps.Flow[T]) -> T:
        """Run a flow to its end; whatever interrupts a step is the flow's to settle."""
        try:
            step = next(flow)
            while True:
                try:
                    reply = await self._do(step)
                except BaseException as error:  # noqa: BLE001  the flow raises it again
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _do(self, step: steps.Request | steps.Pause) -> steps.Reply | None:
        if isinstance(step, steps.Pause):
            await asyncio.sleep(step.seconds)
            return None
        timeout = httpx.Timeout(self._patience, read=self._patience + step.patience)
        try:
            answer = await self._http.request(
                step.method, step.path, json=step.json, timeout=timeout
            )
        except httpx.TransportError as error:
            raise steps.Unreachable(type(error).__name__) from error
        return reply_of(answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
