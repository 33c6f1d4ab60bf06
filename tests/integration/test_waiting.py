"""Waiting in the queue: who is served, when, and what is left of those who go."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import redis
from django.test import override_settings

from django_latch import Latch, LatchError, LatchQueueFull, LatchTimeout, Lease, latch
from django_latch.heartbeat import heartbeat
from tests import servers
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at
from tests.integration.calls import A, grant
from tests.integration.programs import Program, program
from tests.integration.until import until

QUEUE, LIVENESS = audit.key("Q", "job"), audit.key("V", "job")


#: Everything sooner than by default.
QUICK = {"SLICE": 0.1, "LIVE": 1.1, "CLAIM": 1.1}


def lock(timeout: float = 10, **options: object) -> Latch:
    return latch("job", timeout=timeout, **options)  # type: ignore[arg-type]


@dataclass
class Crowd:
    """Threads that wait for the lock one after another, and the order in which they got it."""

    raw: redis.Redis
    served: list[int] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)
    errors: list[LatchError] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def come(self, number: int, **options: object) -> None:
        """One more, behind all who are there."""
        before = self.raw.zcard(QUEUE)
        thread = threading.Thread(target=self._wait, args=(number, options))
        self.threads.append(thread)
        thread.start()
        until(lambda: self.raw.zcard(QUEUE) == before + 1)

    def _wait(self, number: int, options: dict[str, object]) -> None:
        try:
            with lock(**options) as lease:  # type: ignore[arg-type]
                self.served.append(number)
                self.fences.append(lease.fence)
        except LatchError as error:
            self.errors.append(error)

    def gone(self, within: float = 10) -> None:
        """All of them have ended."""
        for thread in self.threads:
            thread.join(within)
            assert not thread.is_alive()


@pytest.fixture
def crowd(raw: redis.Redis) -> Iterator[Crowd]:
    made = Crowd(raw)
    yield made
    made.gone()
    audit.assert_free(raw, "job")


def test_a_waiter_is_woken_at_once(crowd: Crowd) -> None:
    delays = []
    for number in range(5):
        holder = lock(0).acquire()
        crowd.come(number)
        begun = time.monotonic()
        holder.release()
        crowd.threads[-1].join(5)
        delays.append(time.monotonic() - begun)
    assert crowd.served == [0, 1, 2, 3, 4]
    # Far less than the slice of 2 s in which every waiter looks for itself.
    assert sorted(delays)[2] < 0.5, delays


def test_first_come_first_served(crowd: Crowd) -> None:
    holder = lock(0).acquire()
    for number in range(8):
        crowd.come(number)
    holder.release()
    crowd.gone()
    assert crowd.served == list(range(8))
    assert crowd.fences == sorted(crowd.fences)
    assert crowd.fences[0] > holder.fence


def test_a_try_never_passes_those_who_wait(raw: redis.Redis, crowd: Crowd) -> None:
    holder = lock(0, limit=1).acquire()
    crowd.come(1)
    assert lock(0).try_acquire() is None
    assert raw.zcard(QUEUE) == 1  # nor does it queue up
    assert lock(0, limit=2).try_acquire() is None
    holder.release()


def test_the_timeout_is_never_cut_short(raw: redis.Redis) -> None:
    with lock(0, owner="somebody") as holder:
        for seconds in (0.05, 0.3, 2.3):  # the last one is longer than a slice
            begun = time.monotonic()
            with pytest.raises(LatchTimeout) as timeout:
                lock(seconds).acquire()
            waited = time.monotonic() - begun
            assert seconds <= waited < seconds + 2
            error = timeout.value
            assert (error.name, error.reason, error.position) == ("job", "timeout", 1)
            assert seconds <= (error.waited or 0) <= waited + 0.001
            assert error.holder is not None
            assert error.holder["label"] == "somebody"
            assert error.holder["fence"] == holder.fence
            assert not raw.exists(QUEUE, LIVENESS)
            audit.assert_sound(raw)
    assert audit.kinds(raw, "job").count("timed_out") == 3


def test_the_position_counts_those_ahead(crowd: Crowd) -> None:
    holder = lock(0).acquire()
    crowd.come(1)
    crowd.come(2)
    with pytest.raises(LatchTimeout) as timeout:
        lock(0.1).acquire()
    assert timeout.value.position == 3
    holder.release()


def test_the_queue_is_limited(raw: redis.Redis, crowd: Crowd) -> None:
    holder = lock(0).acquire()
    crowd.come(1)
    crowd.come(2)
    begun = time.monotonic()
    with pytest.raises(LatchQueueFull) as full:
        lock(10, max_waiters=2).acquire()
    assert time.monotonic() - begun < 2
    assert full.value.reason == "full"
    assert full.value.holder is not None
    with pytest.raises(LatchQueueFull), latch_settings(MAX_WAITERS=2):
        lock(10).acquire()
    crowd.come(3, max_waiters=3)
    holder.release()
    crowd.gone()
    assert crowd.served == [1, 2, 3]
    assert audit.kinds(raw, "job").count("refused") == 2


def test_nobody_may_wait_where_the_limit_is_zero() -> None:
    with lock(0), pytest.raises(LatchQueueFull):
        lock(10, max_waiters=0).acquire()
    with lock(10, max_waiters=0):
        pass


def test_a_waiter_takes_over_when_the_holders_lease_passes(raw: redis.Redis, crowd: Crowd) -> None:
    grant(A, ttl=1)
    begun = time.monotonic()
    crowd.come(1)
    crowd.gone()
    assert 0.7 < time.monotonic() - begun < 1 + 2
    assert crowd.served == [1]
    assert audit.kinds(raw, "job").count("expired") == 1


def test_ten_threads_wait_with_four_connections(raw: redis.Redis, crowd: Crowd) -> None:
    few = {"OPTIONS": {"CONNECTION_POOL_KWARGS": {"max_connections": 4}}}
    with locks_at(servers.url(), **few):
        holder = lock(0, ttl=1).acquire()
        for number in range(10):
            crowd.come(number)
        time.sleep(0.7)  # the heartbeat renews meanwhile
        holder.ensure_held()
        begun = time.monotonic()
        holder.release()
        assert time.monotonic() - begun < 2
        crowd.gone()
    assert crowd.served == list(range(10))


@override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks", **QUICK})
def test_a_queue_that_was_lost_is_formed_again(raw: redis.Redis, crowd: Crowd) -> None:
    grant(A, ttl=30)
    crowd.come(1)
    crowd.come(2)
    before = raw.zrange(QUEUE, 0, -1, withscores=True)
    raw.flushdb()
    grant(A, ttl=30)  # somebody is quicker than all who waited
    until(lambda: raw.zcard(QUEUE) == 2)
    assert raw.zrange(QUEUE, 0, -1, withscores=True) == before  # with their old tickets
    crowd.come(3)
    assert raw.zrange(QUEUE, 0, -1)[:2] == [token for token, _ in before]
    raw.delete(audit.key("R", "job"))
    crowd.gone(20)
    assert len(crowd.served) == 3


@contextmanager
def waiter_program(timeout: float = 30) -> Iterator[Program]:
    with program(
        f"""
        from django.test import override_settings
        override_settings(DJANGO_LATCH={{"CACHE_ALIAS": "locks", **{QUICK}}}).enable()
        say("up")
        try:
            with latch("job", timeout={timeout}) as lease:
                say("served", lease.fence)
                hear()
        except KeyboardInterrupt:
            say("interrupted")
        except LatchTimeout as error:
            say("timeout")
        """
    ) as running:
        running.expect("up")
        yield running


def test_keyboard_interrupt_in_a_wait_leaves_no_waiter(raw: redis.Redis) -> None:
    with lock(0), waiter_program() as waiter:
        until(lambda: raw.zcard(QUEUE) == 1)
        until(lambda: audit.blocked(raw) == 1)
        waiter.signal(signal.SIGINT)
        waiter.expect("interrupted")
        # Where the interrupt came between two steps, the heartbeat sends the farewell.
        until(lambda: not raw.exists(QUEUE, LIVENESS), within=2)
    audit.assert_free(raw, "job")


def test_a_dead_holder_costs_its_lease(raw: redis.Redis) -> None:
    with program(
        """
        latch("job", timeout=0, ttl=1.5).acquire()
        say("held")
        hear()
        """
    ) as holder:
        holder.expect("held")
        outcome: list[Lease] = []
        thread = threading.Thread(target=lambda: outcome.append(lock(15).acquire()))
        thread.start()
        until(lambda: raw.zcard(QUEUE) == 1)
        holder.kill()
        begun = time.monotonic()
        thread.join(15)
        assert time.monotonic() - begun < 1.5 + 2
    outcome[0].release()


def test_a_dead_first_waiter_costs_at_most_one_claim(raw: redis.Redis) -> None:
    holder = lock(0).acquire()
    with waiter_program() as first, waiter_program() as second:
        until(lambda: raw.zcard(QUEUE) == 2)
        head = raw.zrange(QUEUE, 0, 0)[0]
        pids = {p.pid: p for p in (first, second)}
        owner = audit.records(raw, "job")[head].raw.split("|", 10)[10]
        dead = next(p for pid, p in pids.items() if f'"pid":{pid}' in owner)
        alive = next(p for p in pids.values() if p is not dead)
        dead.kill()
        begun = time.monotonic()
        holder.release()
        assert alive.hear().startswith("served")
        assert time.monotonic() - begun < QUICK["CLAIM"] + 2
        alive.say("go on")
        alive.end()
    audit.assert_free(raw, "job")


def test_a_dead_waiter_is_forgotten(raw: redis.Redis) -> None:
    with lock(0), waiter_program() as waiter:
        until(lambda: raw.zcard(QUEUE) == 1)
        waiter.kill()
        begun = time.monotonic()
        while raw.zcard(QUEUE):
            assert lock(0).try_acquire() is None  # whoever comes clears it away
            assert time.monotonic() < begun + QUICK["LIVE"] + 2
            time.sleep(0.02)
    audit.assert_free(raw, "job")


def test_a_grant_is_worth_the_whole_lease_after_a_wait(crowd: Crowd) -> None:
    holder = lock(0).acquire()
    left: list[float] = []

    def wait() -> None:
        with lock(10, ttl=3, heartbeat=False) as lease:
            left.append(lease.remaining())

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: crowd.raw.zcard(QUEUE) == 1)
    time.sleep(1.5)  # its request stands behind the BLPOP, sent that long ago
    holder.release()
    waiter.join(5)
    assert left[0] > 2


def test_a_waiter_hears_that_the_server_is_gone() -> None:
    errors: list[LatchError] = []

    def wait() -> None:
        try:
            lock(20).acquire()
        except LatchError as error:
            errors.append(error)

    with servers.valkey() as server, locks_at(f"{server.url}/0"):
        grant(A, ttl=30)
        waiter = threading.Thread(target=wait)
        waiter.start()
        with redis.Redis.from_url(f"{server.url}/0") as client:
            until(lambda: client.zcard(QUEUE) == 1)
        begun = time.monotonic()
        server.stop()
        waiter.join(10)
        assert time.monotonic() - begun < 2 + 2
        assert [(type(e).__name__, e.reason) for e in errors] == [
            ("LatchUnavailable", "connection")
        ]
        server.start()
        until(lambda: not heartbeat.owing)  # that it waits no more was said as soon as possible
