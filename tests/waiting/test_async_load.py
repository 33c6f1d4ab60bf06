"""Many tasks of one event loop that wait for one lock."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchNotAcquired, Lease, latch
from tests.integration import audit
from tests.waiting.crowd import PATIENCE, auntil, queue, waiters

THOUSAND = 1000


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 5, "timeout": 60, "max_waiters": 2 * THOUSAND, **options})


@asynccontextmanager
async def measured(lags: list[float]) -> AsyncIterator[None]:
    """Note by how much a task that wants to run every 10 ms comes too late."""

    async def run() -> None:
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - begun - 0.01)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()


def test_a_thousand_tasks_wait_on_three_connections_and_are_served_in_order(
    raw: redis.Redis, connections: Callable[[], int]
) -> None:
    order: list[int] = []
    lags: list[float] = []

    async def take(number: int) -> int:
        async with lock() as lease:
            order.append(number)
            return lease.fence

    async def main() -> list[int]:
        async with measured(lags):
            holder = await lock().aacquire()
            tasks = [asyncio.create_task(take(number)) for number in range(THOUSAND)]
            await auntil(lambda: waiters(raw) == THOUSAND)
            # All of them have polled once more: the slice is 2 s.
            polls = raw.info("commandstats")["cmdstat_evalsha"]["calls"]
            await auntil(
                lambda: raw.info("commandstats")["cmdstat_evalsha"]["calls"] > polls + THOUSAND
            )
            assert waiters(raw) == THOUSAND
            assert connections() <= 3  # calls, messages, heartbeat
            holder.ensure_held()
            await holder.arelease()
            fences = await asyncio.gather(*tasks)
            assert connections() <= 3
            return [holder.fence, *fences]

    fences = asyncio.run(main())
    assert order == list(range(THOUSAND))
    assert fences == sorted(set(fences))
    assert max(lags) < 2, f"the loop stood still for {max(lags):.3f} s"
    audit.assert_free(raw, "job")
    assert connections() <= 1  # the heartbeat's


def test_a_thousand_acquires_that_time_out_at_random_leave_nothing(
    raw: redis.Redis, connections: Callable[[], int]
) -> None:
    dice = random.Random(random.randrange(10**6))
    served: list[Lease] = []

    async def one() -> None:
        lease: Lease | None = None
        try:
            async with asyncio.timeout(dice.uniform(0, 0.25)):
                lease = await lock(ttl=20).aacquire()
        except TimeoutError:
            return
        # The answers were not mixed up: this is the lock's own holder.
        assert list(audit.records(raw, "job")).count(lease.token) == 1
        await lease.arenew()
        await asyncio.sleep(dice.uniform(0, 0.002))
        lease.ensure_held()
        await lease.arelease()
        served.append(lease)

    async def main() -> None:
        for _ in range(10):
            await asyncio.gather(*(one() for _ in range(THOUSAND // 10)))
        await auntil(lambda: not audit.records(raw, "job"))

    asyncio.run(main())
    assert 0 < len(served) < THOUSAND
    assert [lease.fence for lease in served] == sorted({lease.fence for lease in served})
    audit.assert_free(raw, "job")
    assert connections() <= 1


def test_acquires_of_many_locks_cancelled_at_random_cross_no_replies(raw: redis.Redis) -> None:
    """Each lock has a fence of its own kind; a reply that went astray would show."""
    dice = random.Random(random.randrange(10**6))
    names = [f"lock {number}" for number in range(20)]
    refusals: list[tuple[str, str | None]] = []

    async def one(name: str) -> None:
        made = latch(name, ttl=20, timeout=dice.choice([0, 0.05, 5]))
        try:
            async with made as lease:
                assert lease.name == name
                assert lease.token in audit.records(raw, name)
                await lease.arenew()
        except LatchNotAcquired as refused:
            refusals.append((name, refused.name))

    async def main() -> None:
        tasks = [asyncio.create_task(one(dice.choice(names))) for _ in range(600)]
        for task in dice.sample(tasks, 300):
            await asyncio.sleep(dice.uniform(0, 0.002))
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        errors = [error for error in outcomes if isinstance(error, Exception)]
        assert not errors
        await auntil(lambda: all(not audit.records(raw, name) for name in names))

    asyncio.run(main())
    assert all(asked == told for asked, told in refusals)
    audit.assert_nothing_held(raw)


@pytest.mark.usefixtures("_brisk")
def test_waiting_tasks_of_many_locks_share_the_connections(
    raw: redis.Redis, connections: Callable[[], int]
) -> None:
    async def main() -> None:
        holders = [await latch(f"lock {n}").aacquire() for n in range(50)]
        tasks = [
            asyncio.create_task(latch(f"lock {n % 50}", timeout=PATIENCE).aacquire())
            for n in range(150)
        ]
        await auntil(lambda: sum(len(queue(raw, f"lock {n}")) for n in range(50)) == 150)
        assert connections() <= 3
        for holder in holders:
            await holder.arelease()
        for lease in asyncio.as_completed(tasks):
            await (await lease).arelease()

    asyncio.run(main())
    audit.assert_nothing_held(raw)
