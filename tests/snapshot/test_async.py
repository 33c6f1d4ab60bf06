"""The async twin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
import redis

from django_latch import (
    LatchDeadlock,
    LatchTimeout,
    LatchUnavailable,
    LatchValueError,
    asnapshot,
    snapshot,
)
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, elected
from tests.snapshot.test_election import waiting


async def auntil(condition: Callable[[], object], within: float = 5.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"not within {within} s"
        await asyncio.sleep(0.002)


def test_a_function_and_its_twin_share_a_value(sweep: Sweep) -> None:
    async def main() -> None:
        assert await asnapshot(NAME, sweep.a, fresh_for=60) == 1
        assert await asnapshot(NAME, sweep, fresh_for=60) == 1, "a plain compute will do"
        assert await snapshot(NAME, fresh_for=60).aget(sweep.a) == 1
        report = await snapshot(NAME).apeek()
        assert (report.value, report.state) == (1, "hit")

    asyncio.run(main())
    assert snapshot(NAME, sweep, fresh_for=60) == 1
    assert sweep.runs == 1


def test_s3_one_compute_for_all_tasks_of_loops_and_threads(raw: redis.Redis, sweep: Sweep) -> None:
    sweep.takes = 0.5
    shared = snapshot(NAME, fresh_for=60, wait=10)

    async def main() -> list[int]:
        return await asyncio.gather(*(shared.aget(sweep.a) for _ in range(50)))

    loops = [call(asyncio.run, main()) for _ in range(2)]
    threads = [call(shared.get, sweep) for _ in range(5)]
    assert [loop.result(20) for loop in loops] == [[1] * 50] * 2
    assert [thread.result(20) for thread in threads] == [1] * 5
    assert sweep.runs == 1
    audit.assert_free(raw, LOCK)


def test_s6_tasks_that_wait_for_many_snapshots_are_woken(raw: redis.Redis, sweep: Sweep) -> None:
    """One connection listens for all of a loop, whatever they wait for."""

    async def main() -> None:
        go = asyncio.Event()

        async def compute() -> str:
            await go.wait()
            return "done"

        names = [f"region:{number}" for number in range(20)]
        ours = [snapshot(name, fresh_for=60, wait=10) for name in names]
        leaders = [asyncio.create_task(one.aget(compute)) for one in ours]
        await auntil(lambda: len(audit.locks(raw)) == 20)
        waiters = [asyncio.create_task(one.areport(compute)) for one in ours for _ in range(3)]
        await auntil(lambda: waiting(raw) == 1)
        await asyncio.sleep(0.2)
        go.set()
        began = time.monotonic()
        reports = await asyncio.gather(*waiters)
        assert time.monotonic() - began < 5
        assert {report.outcome for report in reports} == {"wait"}
        await asyncio.gather(*leaders)

    with latch_settings(SLICE=8, LIVE=9, CLAIM=9):
        asyncio.run(main())


def test_s33_a_cancelled_leader_frees_the_lock_for_a_waiter(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)

    async def main() -> None:
        with sweep.held():
            leader = asyncio.create_task(shared.aget(sweep.a))
            await auntil(lambda: sweep.runs == 1)
            waiter = asyncio.create_task(shared.areport(lambda: "of the waiter"))
            await asyncio.sleep(0.1)
            leader.cancel()
            report = await waiter
            assert (report.value, report.outcome) == ("of the waiter", "miss")
            with pytest.raises(asyncio.CancelledError):
                await leader

    asyncio.run(main())
    audit.assert_free(raw, LOCK)
    assert snapshot(NAME).peek().failures == 0, "given up, not failed"


def test_s33_a_cancelled_waiter_cancels_nothing(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)

    async def main() -> None:
        with sweep.held():
            leader = asyncio.create_task(shared.aget(sweep.a))
            await auntil(lambda: sweep.runs == 1)
            waiters = [asyncio.create_task(shared.aget(sweep.a)) for _ in range(5)]
            await asyncio.sleep(0.1)
            for waiter in waiters[:3]:
                waiter.cancel()
            done = await asyncio.gather(*waiters[:3], return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in done)
            assert len(elected(raw)) == 1
        assert await leader == 1
        assert await asyncio.gather(*waiters[3:]) == [1, 1]

    asyncio.run(main())
    assert sweep.runs == 1


@pytest.mark.parametrize("moment", range(0, 12, 2))
def test_s33_cancelled_at_any_await_nobody_stays_elected(
    moment: int, raw: redis.Redis, sweep: Sweep
) -> None:
    async def main() -> None:
        task = asyncio.create_task(asnapshot(NAME, sweep.a, fresh_for=60, wait=10))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    until(lambda: elected(raw) == {})
    audit.assert_sound(raw)


def test_s30_nested(raw: redis.Redis) -> None:
    async def main() -> None:
        outer, inner = snapshot("outer", wait=5), snapshot("inner", wait=5)

        async def ask_outer() -> object:
            return await outer.aget(lambda: 1)

        async def ask_inner() -> object:
            return await inner.aget(ask_outer)

        with pytest.raises(LatchDeadlock):
            await outer.aget(ask_inner)

    asyncio.run(main())


def test_s30_a_task_that_outlives_the_compute_that_began_it_may_wait(sweep: Sweep) -> None:
    async def main() -> None:
        shared = snapshot(NAME, fresh_for=0.05, keep_for=0.05, wait=5)
        begun: list[asyncio.Task[object]] = []
        over = asyncio.Event()

        async def ask() -> object:
            await over.wait()
            return await shared.aget(sweep.a)

        async def begin() -> str:
            begun.append(asyncio.create_task(ask()))
            return "first"

        assert await shared.aget(begin) == "first"
        await asyncio.sleep(0.1)
        with sweep.held():
            leader = asyncio.create_task(shared.aget(sweep.a))
            await auntil(lambda: sweep.runs == 1)
            over.set()
            await asyncio.sleep(0.05)
        assert await asyncio.gather(leader, *begun) == [1, 1]

    asyncio.run(main())


@pytest.mark.parametrize("on_outage", ["raise", "compute"])
def test_an_async_compute_needs_the_twin(on_outage: str, sweep: Sweep, raw: redis.Redis) -> None:
    shared = snapshot(NAME, on_outage=on_outage)
    with pytest.raises(LatchValueError, match="async twin"):
        shared.get(sweep.a)
    if on_outage == "compute":
        with locks_at("redis://127.0.0.1:1/0"), pytest.raises(LatchValueError, match="async twin"):
            shared.get(sweep.a)
    audit.assert_free(raw, LOCK)


def test_s12_the_wait_ends_with_its_budget(sweep: Sweep) -> None:
    async def main() -> None:
        with sweep.held():
            leader = asyncio.create_task(asnapshot(NAME, sweep.a))
            await auntil(lambda: sweep.runs == 1)
            begun = time.monotonic()
            with pytest.raises(LatchTimeout):
                await asnapshot(NAME, sweep.a, wait=0.4)
            assert 0.25 < time.monotonic() - begun < 0.4 + 2
        assert await leader == 1

    asyncio.run(main())


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_s10_an_error_reaches_the_leader(error: BaseException, raw: redis.Redis) -> None:
    async def fail() -> None:
        raise error

    async def main() -> None:
        with pytest.raises(type(error)) as raised:
            await asnapshot(NAME, fail)
        assert raised.value is error

    asyncio.run(main())
    audit.assert_free(raw, LOCK)


def test_s16_an_outage(sweep: Sweep) -> None:
    async def main() -> None:
        with pytest.raises(LatchUnavailable):
            await asnapshot(NAME, sweep.a)
        assert await asnapshot(NAME, sweep.a, on_outage="compute") == 1

    with locks_at("redis://127.0.0.1:1/0"):
        asyncio.run(main())


def test_s31_ainvalidate(sweep: Sweep) -> None:
    async def main() -> None:
        shared = snapshot(NAME)
        await shared.aget(sweep.a)
        await shared.ainvalidate()
        assert (await shared.apeek()).state == "miss"
        assert await shared.aget(sweep.a) == 2

    asyncio.run(main())


def test_a_sync_call_may_not_block_a_loop(sweep: Sweep) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    async def main() -> None:
        with pytest.raises(SynchronousOnlyOperation):
            snapshot(NAME, sweep)
        assert snapshot(NAME, sweep, wait=0) == 1, "one that waits for nobody may"

    asyncio.run(main())


@pytest.mark.parametrize("refresh", ["inline", "thread"])
def test_s5_in_a_task_of_its_own(refresh: str, sweep: Sweep) -> None:
    async def main() -> None:
        shared = snapshot(NAME, fresh_for=0.05, keep_for=60, wait=10, refresh=refresh)
        assert await shared.aget(sweep.a) == 1
        await asyncio.sleep(0.1)
        with sweep.held():
            second: Awaitable[object] = asyncio.create_task(shared.areport(sweep.a))
            if refresh == "thread":
                report = await second
                assert report.outcome == "stale"  # type: ignore[attr-defined]
            await auntil(lambda: sweep.runs == 2)
        await auntil(lambda: snapshot(NAME).peek().value == 2)
        if refresh == "inline":
            assert (await second).value == 2  # type: ignore[attr-defined]

    asyncio.run(main())
