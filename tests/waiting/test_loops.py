"""Event loops that come and go: each has connections of its own, and leaves none behind."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from django_latch import Latch, latch
from tests.integration import audit
from tests.integration.programs import program
from tests.integration.until import until
from tests.waiting.crowd import PATIENCE, Crowd, auntil, eventually, waiters


@pytest.fixture(autouse=True)
def _nothing_unclosed() -> Iterator[None]:
    """A connection, task or coroutine that nobody ended warns when it is collected."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


async def use() -> None:
    async with lock():
        pass


async def wait() -> None:
    """Have a task wait for another, so that every connection of a loop is in use."""
    async with lock():
        waiting = asyncio.create_task(lock().aacquire())
        await asyncio.sleep(0.01)
    await (await waiting).arelease()


def closed_loops() -> int:
    """How many event loops are remembered though they have ended."""
    gc.collect()
    loops = [found for found in gc.get_objects() if isinstance(found, asyncio.BaseEventLoop)]
    return sum(loop.is_closed() for loop in loops)


@pytest.mark.parametrize("work", [use, wait])
def test_loops_one_after_the_other_leave_nothing(
    raw: redis.Redis, connections: Callable[[], int], work: Callable[[], Any]
) -> None:
    before = closed_loops()  # what other tests have left
    for _ in range(25):
        asyncio.run(work())
        until(lambda: connections() <= 1)  # the heartbeat's
    # Each store may know the last one until the next comes.
    assert closed_loops() < before + 5
    audit.assert_free(raw, "job")


def test_a_loop_ends_while_its_tasks_hold_and_wait(
    raw: redis.Redis, connections: Callable[[], int]
) -> None:
    """Tasks that asyncio.run() cancels still give back what they have, and it ends."""

    async def hold(name: str) -> None:
        async with latch(name, timeout=PATIENCE):
            await asyncio.sleep(3600)

    async def main(count: int) -> None:
        names = [f"lock {number % 3}" for number in range(count)]
        tasks = [asyncio.create_task(hold(name)) for name in names]
        await asyncio.sleep(0.002 * (count % 4))
        assert not any(task.done() for task in tasks)

    for count in range(1, 25):
        begun = time.monotonic()
        asyncio.run(main(count))
        assert time.monotonic() - begun < PATIENCE / 2
        eventually(lambda: audit.assert_nothing_held(raw))
        until(lambda: connections() <= 1)


def test_a_loop_whose_other_tasks_are_all_cancelled_goes_on(raw: redis.Redis) -> None:
    """Some programs cancel every task but their own; among them are those of the store."""

    async def main() -> None:
        async with lock() as lease:
            waiting = asyncio.create_task(lock().aacquire())
            await auntil(lambda: waiters(raw) == 1)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await lease.arenew()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert waiters(raw) == 0
            again = asyncio.create_task(lock().aacquire())
            await auntil(lambda: waiters(raw) == 1)
        await (await again).arelease()

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_two_loops_in_two_threads(
    raw: redis.Redis, connections: Callable[[], int], crowd: Crowd
) -> None:
    inside: list[str] = []

    async def take() -> int:
        async with lock() as lease:
            inside.append(lease.token)
            await asyncio.sleep(0.001)
            assert inside == [lease.token]
            inside.remove(lease.token)
            return lease.fence

    async def main() -> list[int]:
        return await asyncio.gather(*(take() for _ in range(25)))

    crowd.start(asyncio.run, main())
    crowd.start(asyncio.run, main())
    crowd.start(lambda: [take_sync(inside) for _ in range(25)])
    fences = [fence for fences in crowd.results() for fence in fences]
    assert len(set(fences)) == 75
    audit.assert_free(raw, "job")
    until(lambda: connections() <= 4)  # of the threads that used the sync API


def take_sync(inside: list[str]) -> int:
    with lock() as lease:
        inside.append(lease.token)
        assert inside == [lease.token]
        inside.remove(lease.token)
        return lease.fence


def test_a_lease_may_be_released_in_another_loop(raw: redis.Redis) -> None:
    async def take() -> Any:
        return await lock().aacquire()

    lease = asyncio.run(take())
    lease.ensure_held()
    asyncio.run(lease.arelease())
    audit.assert_free(raw, "job")
    lease = asyncio.run(take())
    lease.release()
    audit.assert_free(raw, "job")


async def turns_of_the_loop(count: int, do: Callable[[], Awaitable[None]]) -> None:
    for _ in range(count):
        await do()
        await asyncio.sleep(0)


async def cancelled(raw: redis.Redis, contended: bool, turns: int, more: int | None) -> bool:
    """Cancel an acquire after so many turns, and perhaps again after a few more.

    Returns:
        Whether it was still under way.
    """
    holder = await lock().aacquire() if contended else None

    async def give_way() -> None:
        if holder is not None and waiters(raw):
            await holder.arelease()

    task = asyncio.create_task(lock().aacquire())
    await turns_of_the_loop(turns, give_way)
    under_way = task.cancel()
    if more is not None:
        await turns_of_the_loop(more, give_way)
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        await task.result().arelease()
    if holder is not None:
        await holder.arelease()
    await auntil(lambda: not audit.records(raw, "job"))
    return under_way


async def forgotten(made: Any, inside: asyncio.Event) -> None:
    """Holds, and waits for something that nobody else knows."""
    async with made:
        inside.set()
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("made", [lock(), Latch.many("job", "other")])
def test_a_task_that_is_garbage_collected_frees_its_lock(raw: redis.Redis, made: Any) -> None:
    async def main() -> None:
        inside = asyncio.Event()
        task = asyncio.create_task(forgotten(made, inside))
        await inside.wait()
        assert audit.listed(raw, "job")
        del task
        gc.collect()
        await auntil(lambda: not audit.records(raw, "job"))

    asyncio.run(main())
    audit.assert_nothing_held(raw)


@pytest.mark.parametrize("contended", [False, True])
def test_cancelled_after_any_number_of_turns_of_the_loop(raw: redis.Redis, contended: bool) -> None:
    async def main() -> int:
        for turns in itertools.count():
            under_way = [
                await cancelled(raw, contended, turns, more) for more in (None, 0, 1, 2, 3)
            ]
            if not any(under_way):
                return turns
        raise AssertionError

    assert asyncio.run(main()) >= 3
    audit.assert_free(raw, "job")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks before 3.12")
def test_eager_tasks(raw: redis.Redis) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(use())
            group.create_task(wait())

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_async_to_sync_and_back(raw: redis.Redis, connections: Callable[[], int]) -> None:
    def sync_use() -> int:
        with lock() as lease:
            return lease.fence

    async def main() -> list[int]:
        async with lock() as lease:
            pass
        return [lease.fence, await sync_to_async(sync_use)()]

    for _ in range(10):
        first, second = async_to_sync(main)()
        assert first < second
    audit.assert_free(raw, "job")
    until(lambda: connections() <= 2)


async def async_view(request: HttpRequest) -> HttpResponse:
    async with lock() as lease:
        return HttpResponse(str(lease.fence))


def sync_view(request: HttpRequest) -> HttpResponse:
    with lock() as lease:
        return HttpResponse(str(lease.fence))


@async_to_sync
async def bridged(request: HttpRequest) -> HttpResponse:
    return await async_view(request)


urlpatterns = [path("async", async_view), path("sync", sync_view), path("bridged", bridged)]


def test_views_of_django(raw: redis.Redis) -> None:
    async def main() -> list[int]:
        client = AsyncClient()
        pages = ["async", "sync", "async", "bridged"] * 5
        answers = await asyncio.gather(*(client.get(f"/{page}") for page in pages))
        assert {answer.status_code for answer in answers} == {200}
        return [int(answer.content) for answer in answers]

    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        fences = asyncio.run(main())
        assert len(set(fences)) == len(fences)
        client = Client()
        assert [client.get(f"/{page}").status_code for page in ("async", "sync")] == [200, 200]
    audit.assert_free(raw, "job")


STRICT = """
import asyncio, gc, sys, tracemalloc

# How fast this machine is just now is not the question.
asyncio.BaseEventLoop.slow_callback_duration = property(lambda self: 60.0, lambda self, value: None)

async def use():
    async with latch("job", ttl=20):
        pass

async def wait():
    async with latch("job", ttl=20):
        waiting = asyncio.create_task(latch("job", timeout=20).aacquire())
        await asyncio.sleep(0.01)
    await (await waiting).arelease()

async def leave():
    asyncio.create_task(wait())
    asyncio.create_task(use())
    await asyncio.sleep(0.005)

for work in (use, wait, leave):
    for _ in range(20):
        asyncio.run(work())
gc.collect()
say("done")
"""


def test_in_pythons_development_mode_nothing_warns(raw: redis.Redis) -> None:
    with program(STRICT, PYTHONDEVMODE="1", PYTHONWARNINGS="error") as strict:
        strict.expect("done")
        assert strict.end() == 0
    assert not strict.errors
    eventually(lambda: audit.assert_free(raw, "job"))


def test_a_loop_that_ends_in_a_thread_leaves_the_others_alone(raw: redis.Redis) -> None:
    ended = threading.Event()

    async def main() -> None:
        waiting = asyncio.create_task(lock().aacquire())
        await auntil(ended.is_set)
        await asyncio.sleep(0.05)
        assert not waiting.done()
        holder.release()
        await (await waiting).arelease()

    with lock() as holder:
        other = threading.Thread(target=lambda: (asyncio.run(use_other()), ended.set()))
        other.start()
        asyncio.run(main())
        other.join(PATIENCE)
    audit.assert_nothing_held(raw)


async def use_other() -> None:
    async with latch("other"):
        pass
