from __future__ import annotations

import asyncio
import threading

import redis

from django_latch import Latch, latch
from tests.integration import audit
from tests.integration.until import until
from tests.scale.conftest import Stopwatch
from tests.waiting.crowd import auntil, waiters

LEASES = 10_000
WAITERS = 5_000


def test_one_thread_renews_ten_thousand_leases(raw: redis.Redis, measure: Stopwatch) -> None:
    with measure(f"{LEASES:,} leases taken"):
        leases = [latch(f"job {n}", ttl=15, timeout=0).acquire() for n in range(LEASES)]
    first = {lease.name: lease.remaining() for lease in leases}
    calls = int(raw.info("commandstats")["cmdstat_evalsha"]["calls"])

    def renewed() -> int:
        return int(raw.info("commandstats")["cmdstat_evalsha"]["calls"]) - calls

    with measure("three renewals of each"):
        until(lambda: renewed() >= 3 * LEASES, within=30)
    assert all(lease.lost is None for lease in leases)
    assert min(first.values()) > 0
    assert [t.name for t in threading.enumerate()].count("django_latch-heartbeat") == 1
    with measure("and released"):
        for lease in leases:
            lease.release()
    audit.assert_nothing_held(raw)


def test_five_thousand_tasks_wait_for_one_lock(raw: redis.Redis, measure: Stopwatch) -> None:
    order: list[int] = []

    def job() -> Latch:
        return latch("job", ttl=30, timeout=300, max_waiters=2 * WAITERS)

    async def take(number: int) -> None:
        async with job():
            order.append(number)

    async def main() -> None:
        holder = await job().aacquire()
        tasks = [asyncio.create_task(take(number)) for number in range(WAITERS)]
        with measure(f"{WAITERS:,} tasks queue up"):
            await auntil(lambda: waiters(raw) == WAITERS, within=60)
        with measure("and are served one after the other"):
            await holder.arelease()
            await asyncio.gather(*tasks)

    asyncio.run(main())
    assert order == list(range(WAITERS))
    audit.assert_free(raw, "job")
