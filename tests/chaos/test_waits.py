"""Waits that last, and waiters that die."""

from __future__ import annotations

import threading
import time

import pytest
import redis

from django_latch import LatchTimeout, Lease, latch
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.calls import A, grant
from tests.integration.programs import program
from tests.integration.until import until

QUEUE = audit.key("Q", "job")


def test_twelve_seconds_on_a_default_client(raw: redis.Redis) -> None:
    """Longer than the 5 s after which redis-py gives up an answer by default."""
    with latch("job", timeout=0):
        begun = time.monotonic()
        with pytest.raises(LatchTimeout):
            latch("job", timeout=12).acquire()
        assert 12 <= time.monotonic() - begun < 12 + 2


def test_a_holder_that_releases_after_twelve_seconds(raw: redis.Redis) -> None:
    outcome: list[Lease] = []
    holder = latch("job", timeout=0).acquire()
    waiter = threading.Thread(target=lambda: outcome.append(latch("job", timeout=30).acquire()))
    raw.config_resetstat()
    waiter.start()
    # Six slices of two seconds, and the next one.
    until(lambda: raw.info("commandstats").get("cmdstat_blpop", {}).get("calls", 0) > 6, within=15)
    assert raw.zcard(QUEUE) == 1
    begun = time.monotonic()
    holder.release()
    waiter.join(10)
    assert time.monotonic() - begun < 2
    outcome[0].release()


def test_fifty_waiters_that_are_killed_together_cost_little(raw: redis.Redis) -> None:
    holder = latch("job", timeout=0).acquire()
    with program(
        """
        import threading
        for _ in range(50):
            threading.Thread(target=latch("job", timeout=60).acquire, daemon=True).start()
        hear()
        """
    ) as crowd:
        until(lambda: raw.zcard(QUEUE) == 50, within=30)
        outcome: list[Lease] = []
        last = threading.Thread(target=lambda: outcome.append(latch("job", timeout=60).acquire()))
        last.start()
        until(lambda: raw.zcard(QUEUE) == 51)
        crowd.kill()
        begun = time.monotonic()
        holder.release()
        last.join(30)
        assert time.monotonic() - begun < 3 + 3 + 2  # their liveness, one claim
    outcome[0].release()
    audit.assert_free(raw, "job")


def test_a_hundred_threads_wait_and_all_are_served(raw: redis.Redis) -> None:
    served: list[int] = []

    def wait() -> None:
        with latch("job", timeout=60) as lease:
            served.append(lease.fence)

    grant(A, ttl=3)
    threads = [threading.Thread(target=wait) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(served) == 100
    assert served == sorted(served)
    audit.assert_free(raw, "job")


def test_a_queue_whose_data_is_lost_again_and_again(raw: redis.Redis) -> None:
    served: list[int] = []

    def wait(number: int) -> None:
        with latch("job", timeout=60, ttl=30, heartbeat=False) as lease:
            served.append(number)
            del lease

    grant(A, ttl=30)
    threads = [threading.Thread(target=wait, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    until(lambda: raw.zcard(QUEUE) == 10)
    for _ in range(4):
        raw.flushdb()
        grant(A, ttl=30)
        until(lambda: raw.zcard(QUEUE) == 10)
    raw.delete(audit.key("R", "job"))
    for thread in threads:
        thread.join(60)
    assert sorted(served) == list(range(10))


def test_short_slices(raw: redis.Redis) -> None:
    with latch_settings(SLICE=0.1, LIVE=1.1, CLAIM=1.1), latch("job", timeout=0):
        raw.config_resetstat()
        with pytest.raises(LatchTimeout):
            latch("job", timeout=2).acquire()
        polls = raw.info("commandstats")["cmdstat_evalsha"]["calls"]
        assert 5 < polls < 40
