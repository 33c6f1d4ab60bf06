"""Many that wait, in threads of this process or in processes of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

import redis

from tests.integration import audit
from tests.integration.until import until

T = TypeVar("T")

#: Shorter slices than the usual; a program takes them over by `settled(**BRISK)`.
BRISK = {"SLICE": 0.2, "LIVE": 1.2, "CLAIM": 1.2}

#: Seconds after which something that should have happened counts as not happening.
PATIENCE = 20.0


def settled(**changes: object) -> str:
    """Code for a program: DJANGO_LATCH with these changes."""
    return f"""
from django.conf import settings
settings.DJANGO_LATCH = {{**settings.DJANGO_LATCH, **{changes!r}}}
"""


def waiters(raw: redis.Redis, name: str = "job") -> int:
    """How many stand in the queue."""
    return int(raw.zcard(audit.key("Q", name)))


def queue(raw: redis.Redis, name: str = "job") -> dict[str, float]:
    """The queue, first to last: token -> ticket."""
    return dict(raw.zrange(audit.key("Q", name), 0, -1, withscores=True))


class Crowd:
    """Threads that queue up one after the other."""

    def __init__(self, raw: redis.Redis) -> None:
        self._raw = raw
        self._pool = ThreadPoolExecutor(200)
        self._futures: list[Future[Any]] = []
        self.ended = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.ended.set()
        self._pool.shutdown()

    def start(self, do: Callable[..., T], *args: object) -> Future[T]:
        """Run it in a thread."""
        future = self._pool.submit(do, *args)
        self._futures.append(future)
        return future

    def queue_up(self, do: Callable[..., T], *args: object, name: str = "job") -> Future[T]:
        """Run it in a thread, and return when one more waits for the lock."""
        before = waiters(self._raw, name)
        future = self.start(do, *args)
        until(lambda: waiters(self._raw, name) == before + 1 or future.done(), PATIENCE)
        assert not future.done(), future.exception()
        return future

    def results(self) -> list[Any]:
        """What all of them returned; raises what one of them raised."""
        end = time.monotonic() + PATIENCE
        return [future.result(max(end - time.monotonic(), 0)) for future in self._futures]


def eventually(check: Callable[[], object], within: float = 5.0) -> None:
    """Let a check pass as soon as it does; what is sent in the background may be under way."""
    end = time.monotonic() + within
    while True:
        try:
            check()
        except AssertionError:
            if time.monotonic() > end:
                raise
        else:
            return
        time.sleep(0.005)


async def auntil(condition: Callable[[], object], within: float = PATIENCE) -> None:
    """As `until`, in an event loop."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"not within {within} s"
        await asyncio.sleep(0.002)
