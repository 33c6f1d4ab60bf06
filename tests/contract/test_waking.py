"""Waiters are woken, on every store, in threads and in tasks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from django.test import override_settings

from django_latch import LatchTimeout, latch
from django_latch.testing import assert_free, memory_locks
from tests import settings


@pytest.fixture(params=["memory", "redis"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    # Longer slices than any of the waits: whoever enters early was woken.
    slow = {"SLICE": 20, "LIVE": 30, "CLAIM": 30}
    if request.param == "memory":
        with memory_locks(**slow):
            yield
    else:
        with override_settings(DJANGO_LATCH={**settings.DJANGO_LATCH, **slow}):
            yield


def test_a_thread_is_woken_by_the_release() -> None:
    entered = threading.Event()

    def wait() -> None:
        with latch("a", timeout=60):
            entered.set()

    lease = latch("a", timeout=0).acquire()
    thread = threading.Thread(target=wait)
    thread.start()
    until_waiting("a", 1)
    assert not entered.is_set()
    lease.release()
    assert entered.wait(2)
    thread.join(2)
    assert_free("a")


def test_threads_enter_one_at_a_time_and_in_order() -> None:
    entered: list[int] = []
    inside = threading.Semaphore(1)

    def wait(n: int) -> None:
        with latch("a", timeout=60):
            assert inside.acquire(blocking=False), "two hold it"
            entered.append(n)
            inside.release()

    lease = latch("a", timeout=0).acquire()
    threads = [threading.Thread(target=wait, args=(n,)) for n in range(10)]
    for n, thread in enumerate(threads):
        thread.start()
        until_waiting("a", n + 1)
    lease.release()
    for thread in threads:
        thread.join(5)
    assert entered == list(range(10))
    assert_free("a")


def test_tasks_are_woken_by_each_other() -> None:
    entered: list[int] = []

    async def wait(n: int) -> None:
        async with latch("a", timeout=60):
            entered.append(n)

    async def main() -> float:
        async with latch("a", timeout=0):
            tasks = []
            for n in range(10):
                tasks.append(asyncio.create_task(wait(n)))
                await asyncio.to_thread(until_waiting, "a", n + 1)
            begun = time.monotonic()
        await asyncio.gather(*tasks)
        return time.monotonic() - begun

    assert asyncio.run(main()) < 5
    assert entered == list(range(10))
    assert_free("a")


def test_a_task_is_woken_by_a_thread() -> None:
    lease = latch("a", timeout=0).acquire()

    async def wait() -> None:
        async with latch("a", timeout=60):
            pass

    async def main() -> float:
        task = asyncio.create_task(wait())
        await asyncio.to_thread(until_waiting, "a", 1)
        begun = time.monotonic()
        await asyncio.to_thread(lease.release)
        await task
        return time.monotonic() - begun

    assert asyncio.run(main()) < 2
    assert_free("a")


def test_a_wait_in_vain_leaves_no_waiter() -> None:
    with latch("a", timeout=0):
        begun = time.monotonic()
        with pytest.raises(LatchTimeout):
            latch("a", timeout=0.2).acquire()
        assert 0.2 <= time.monotonic() - begun < 2.2
        assert waiting("a") == 0


def test_a_cancelled_task_leaves_no_waiter() -> None:
    async def main() -> None:
        async with latch("a", timeout=0):
            task = asyncio.create_task(latch("a", timeout=60).aacquire())
            await asyncio.to_thread(until_waiting, "a", 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until_waiting, "a", 0)

    asyncio.run(asyncio.wait_for(main(), 10))
    assert_free("a")


def waiting(name: str) -> int:
    lock = latch(name).inspect()
    return lock.waiters if lock else 0


def until_waiting(name: str, count: int) -> None:
    until = time.monotonic() + 10
    while waiting(name) != count:
        assert time.monotonic() < until, f"not {count} are waiting, but {waiting(name)}"
