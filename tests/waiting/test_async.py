"""The async twins, as tasks of one event loop use them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
from django.core.exceptions import SynchronousOnlyOperation

from django_latch import (
    Latch,
    LatchBusy,
    LatchNotAcquired,
    LatchNotHeld,
    LatchTimeout,
    Lease,
    current_lease,
    latch,
    signals,
)
from tests.integration import audit
from tests.waiting.crowd import PATIENCE, auntil, waiters


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


def test_the_twins_do_what_the_others_do(raw: redis.Redis) -> None:
    async def main() -> None:
        lease = await lock().aacquire()
        assert list(audit.records(raw, "job")) == [lease.token]
        assert await lock(timeout=0).atry_acquire() is None
        with pytest.raises(LatchBusy) as refused:
            await lock(timeout=0).aacquire()
        assert refused.value.holder is not None
        assert refused.value.holder["fence"] == lease.fence
        await asyncio.sleep(0.02)
        before = audit.records(raw, "job")[lease.token].exp
        await lease.arenew()
        assert audit.records(raw, "job")[lease.token].exp >= before + 20
        token = await lease.adetach()
        with pytest.raises(LatchNotHeld, match="adopted"):
            await lease.arenew()
        adopted = await lock().aadopt(token)
        assert adopted.fence > lease.fence
        with pytest.raises(LatchNotHeld) as twice:
            await lock().aadopt(token)
        assert twice.value.reason == "adopted"
        await adopted.arelease()
        await adopted.arelease()  # quiet the second time
        last = await lock(timeout=0).atry_acquire()
        assert last is not None
        await last.arelease()

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_async_with_holds_for_the_block(raw: redis.Redis) -> None:
    async def main() -> None:
        async with lock() as lease:
            assert current_lease() is lease
            assert audit.listed(raw, "job") == [lease.token]
            lease.ensure_held()
        assert current_lease() is None
        audit.assert_free(raw, "job")
        async with await lock().aacquire() as lease:
            assert audit.listed(raw, "job") == [lease.token]

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_an_error_of_the_block_is_raised_and_the_lock_free(raw: redis.Redis) -> None:
    async def main() -> None:
        async with lock():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
    audit.assert_free(raw, "job")


def test_a_decorated_coroutine_function_holds_during_its_call(raw: redis.Redis) -> None:
    @latch("report:{year}", timeout=0)
    async def report(year: int, *, lang: str = "en") -> tuple[int, str]:
        lease = current_lease()
        assert lease is not None
        assert lease.name == f"report:{year}"
        assert audit.listed(raw, lease.name) == [lease.token]
        await asyncio.sleep(0.01)
        lease.ensure_held()
        return year, lang

    @latch("report:{year}", timeout=0, on_conflict="skip", skip_value="skipped")
    async def skipping(year: int) -> str:
        return "ran"

    async def main() -> None:
        assert asyncio.iscoroutinefunction(report)
        assert report.__name__ == "report"
        assert await report(2026, lang="de") == (2026, "de")
        first, second = await asyncio.gather(report(1), report(1), return_exceptions=True)
        assert first == (1, "en")
        assert isinstance(second, LatchBusy)
        both = await asyncio.gather(report(1), report(2))
        assert both == [(1, "en"), (2, "en")]
        async with latch("report:7"):
            assert await skipping(7) == "skipped"
        assert await skipping(7) == "ran"

    asyncio.run(main())
    audit.assert_nothing_held(raw)


def test_tasks_are_served_in_the_order_in_which_they_came(raw: redis.Redis) -> None:
    order: list[int] = []

    async def take(number: int) -> None:
        async with lock() as lease:
            order.append(number)
            assert current_lease() is lease

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            async with lock():
                for number in range(30):
                    group.create_task(take(number))
                    await auntil(lambda number=number: waiters(raw) == number + 1)
            await asyncio.sleep(0)

    asyncio.run(main())
    assert order == list(range(30))
    audit.assert_free(raw, "job")


def test_a_call_made_again_while_the_first_waits_gets_the_same_lease(raw: redis.Redis) -> None:
    async def main() -> None:
        holder = await latch("job", timeout=0).aacquire()
        ask = latch("job", timeout=PATIENCE)
        token = "t" * 32
        asking = [asyncio.create_task(ask.aacquire(token=token)) for _ in range(3)]
        await asyncio.sleep(0.3)
        await holder.arelease()
        first, *others = await asyncio.gather(*asking)
        assert {other.fence for other in others} == {first.fence}
        for lease in (first, *others):
            await lease.arelease()

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_a_latch_shared_by_tasks_gives_each_its_own_lease() -> None:
    shared = lock()
    inside: list[Lease] = []

    async def take() -> str:
        async with shared as lease:
            inside.append(lease)
            await asyncio.sleep(0.001)
            assert inside == [lease]
            assert current_lease() is lease
            inside.remove(lease)
            return lease.token

    async def main() -> list[str]:
        return await asyncio.gather(*(take() for _ in range(20)))

    assert len(set(asyncio.run(main()))) == 20


def test_one_task_cannot_end_the_lease_of_another(raw: redis.Redis) -> None:
    shared = lock()
    started, other_tried = asyncio.Event(), asyncio.Event()

    async def holder() -> None:
        async with shared as lease:
            started.set()
            await other_tried.wait()
            lease.ensure_held()
            assert audit.listed(raw, "job") == [lease.token]

    async def thief() -> None:
        await started.wait()
        with pytest.raises(LatchTimeout):
            async with shared.replace(timeout=0.05):
                pytest.fail("two at once")
        other_tried.set()

    async def main() -> None:
        await asyncio.gather(holder(), thief())

    asyncio.run(main())


def test_child_tasks_see_their_parents_lease_and_not_the_other_way_round(
    raw: redis.Redis,
) -> None:
    async def main() -> None:
        async with lock() as outer:

            async def child() -> None:
                assert current_lease() is outer
                async with latch("inner") as inner:
                    assert current_lease() is inner
                    await asyncio.sleep(0)
                assert current_lease() is outer

            await asyncio.gather(child(), asyncio.to_thread(lambda: None))
            assert current_lease() is outer
            assert await asyncio.to_thread(current_lease) is outer

    asyncio.run(main())
    audit.assert_nothing_held(raw)


def test_a_task_group_that_fails_frees_the_locks_of_its_tasks(raw: redis.Redis) -> None:
    async def hold(name: str) -> None:
        async with latch(name, timeout=10):
            await asyncio.Event().wait()

    async def fail() -> None:
        await auntil(lambda: len(audit.locks(raw)) == 3 and waiters(raw, "a") == 1)
        raise ZeroDivisionError

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c", "a"):
                group.create_task(hold(name))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as failed:
        asyncio.run(main())
    assert [type(error) for error in failed.value.exceptions] == [ZeroDivisionError]
    audit.assert_nothing_held(raw)


def test_cancelled_in_the_block_it_releases(raw: redis.Redis) -> None:
    async def main() -> None:
        inside = asyncio.Event()

        async def hold() -> None:
            async with lock():
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        audit.assert_free(raw, "job")

    asyncio.run(main())


def test_cancelled_in_the_wait_it_leaves_the_queue(raw: redis.Redis) -> None:
    async def main() -> None:
        async with lock():
            tasks = [asyncio.create_task(lock().aacquire()) for _ in range(5)]
            await auntil(lambda: waiters(raw) == 5)
            for task in tasks[1:4]:
                task.cancel()
            await asyncio.wait(tasks[1:4])
            assert all(task.cancelled() for task in tasks[1:4])
            assert waiters(raw) == 2  # gone when the cancelled call returns
        lease = await tasks[0]
        await lease.arelease()
        await (await tasks[4]).arelease()

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_a_time_limit_of_asyncio_is_kept(raw: redis.Redis) -> None:
    async def main() -> None:
        async with lock():
            begun = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await lock().aacquire()
            assert 0.3 <= time.monotonic() - begun < 2.3
            assert waiters(raw) == 0
            # The task goes on as if nothing had happened.
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    asyncio.run(main())


@pytest.mark.usefixtures("_brisk")
@pytest.mark.parametrize("timeout", [0.02, 0.3, 0.7])
def test_a_timeout_is_never_early(raw: redis.Redis, timeout: float) -> None:
    async def main() -> None:
        async with lock():
            begun = time.monotonic()
            with pytest.raises(LatchTimeout) as refused:
                await lock(timeout=timeout).aacquire()
            assert timeout <= time.monotonic() - begun < timeout + 2
            assert refused.value.position in (1, None)
            await auntil(lambda: waiters(raw) == 0)

    asyncio.run(main())
    audit.assert_free(raw, "job")


def test_a_waiting_sync_acquire_in_an_event_loop_is_refused(raw: redis.Redis) -> None:
    def with_block() -> None:
        with lock():
            pytest.fail("it blocked the loop")

    @lock()
    def decorated() -> None:
        pytest.fail("it blocked the loop")

    calls: list[Callable[[], object]] = [
        lock().acquire,
        lock().try_acquire,
        with_block,
        decorated,
        Latch.many("job", "other").acquire,
        Latch.many("job", "other").try_acquire,
    ]

    async def main() -> None:
        for call in calls:
            with pytest.raises(SynchronousOnlyOperation, match="async twin"):
                call()
        assert not raw.keys("*")
        with lock(timeout=0):  # one try does not wait
            pass
        await asyncio.to_thread(lambda: lock().acquire().release())

    asyncio.run(main())


def test_signals_are_sent_by_the_twins(raw: redis.Redis) -> None:
    heard: list[str] = []

    def hear(signal: Any, **payload: Any) -> None:
        heard.append(payload.get("reason") or f"fence {payload['fence']}")

    async def main() -> Lease:
        async with lock() as lease:
            with pytest.raises(LatchNotAcquired):
                await lock(timeout=0).aacquire()
        return lease

    every = (signals.lock_acquired, signals.lock_contended, signals.lock_released)
    for signal in every:
        signal.connect(hear)
    try:
        lease = asyncio.run(main())
    finally:
        for signal in every:
            signal.disconnect(hear)
    assert heard == [f"fence {lease.fence}", "busy", f"fence {lease.fence}"]


def test_a_lease_is_renewed_while_its_task_waits_for_something_else(raw: redis.Redis) -> None:
    async def main() -> None:
        async with lock(ttl=0.3) as lease:
            await asyncio.sleep(1.0)
            lease.ensure_held()

    asyncio.run(main())
    assert audit.kinds(raw, "job") == ["acquired", "released"]


@asynccontextmanager
async def fixture_like() -> AsyncIterator[Lease]:
    """Enters in one task what another may leave, as test fixtures and ASGI servers do."""
    async with lock() as lease:
        yield lease


def test_a_block_may_be_left_in_another_task(raw: redis.Redis) -> None:
    async def main() -> None:
        manager = fixture_like()
        enter: Coroutine[Any, Any, Lease] = manager.__aenter__()
        lease = await asyncio.create_task(enter)
        assert audit.listed(raw, "job") == [lease.token]
        leave: Coroutine[Any, Any, Any] = manager.__aexit__(None, None, None)
        await asyncio.create_task(leave)
        audit.assert_free(raw, "job")

    asyncio.run(main())
