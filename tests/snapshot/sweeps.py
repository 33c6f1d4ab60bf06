"""Computes that count their runs over threads and processes, and callers of snapshots."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from django_latch.snapshots import Snapshot
from django_latch.snapshots.description import store_name
from tests.integration import audit

NAME = "health"
LOCK = store_name(NAME, 1)


class Sweep:
    """Returns 1, 2, 3 and so on, as often as it has run; `hold` keeps it running.

    Parameters:
        log: a file that gets a line per run.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        self.log.touch()
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Semaphore(0)
        self.takes = 0.0

    def __call__(self) -> int:
        with self.log.open("a") as log:
            log.write(f"{os.getpid()}\n")
        number = self.runs
        self.begun.release()
        time.sleep(self.takes)
        assert self.go.wait(20)
        return number

    async def a(self) -> int:
        """The same for event loops."""
        with self.log.open("a") as log:
            log.write(f"{os.getpid()}\n")
        number = self.runs
        self.begun.release()
        await asyncio.sleep(self.takes)
        await asyncio.to_thread(self.go.wait, 20)
        return number

    @property
    def runs(self) -> int:
        """How often it was begun."""
        return len(self.log.read_text().split())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Computes that begin in the block end after it; see `await_begin`."""
        while self.begun.acquire(blocking=False):
            pass  # an earlier one
        self.go.clear()
        try:
            yield
        finally:
            self.go.set()

    def await_begin(self) -> None:
        """Until one more has begun."""
        assert self.begun.acquire(timeout=10)


def call(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """Call it in a thread of its own."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function, *args)
    pool.shutdown(wait=False)
    return future


def together(count: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """What so many threads get that call at the same time; errors among it."""
    barrier = threading.Barrier(count)

    def one() -> Any:
        barrier.wait()
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001  judged by the test
            return error

    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(one) for _ in range(count)]]


def stale(snapshot: Snapshot, value: Any, raw: redis.Redis) -> None:
    """Have a value that is not fresh any more."""
    snapshot.get(lambda: value)
    facts = raw.hget(audit.key("S", LOCK), "m").split("|")
    facts[2] = facts[1]
    raw.hset(audit.key("S", LOCK), "m", "|".join(facts))


def elected(raw: redis.Redis) -> dict[str, audit.Record]:
    """Who computes."""
    return audit.records(raw, LOCK)
