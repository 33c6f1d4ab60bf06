"""The queue of a lock, as threads see it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchBusy, LatchQueueFull, LatchTimeout, latch
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.calls import request, send
from tests.integration.until import until
from tests.waiting.crowd import BRISK, PATIENCE, Crowd, queue, waiters

brisk = pytest.mark.usefixtures("_brisk")


def lock(**options: object) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})  # type: ignore[arg-type]


def token(number: int) -> str:
    return f"{number:040d}"


def test_waiters_are_served_in_the_order_in_which_they_came(raw: redis.Redis, crowd: Crowd) -> None:
    order = []

    def take(number: int) -> int:
        with lock() as lease:
            order.append(number)
            return lease.fence

    with lock() as first:
        for number in range(12):
            crowd.queue_up(take, number)
    fences = crowd.results()
    assert order == list(range(12))
    assert [first.fence, *fences] == sorted({first.fence, *fences})
    audit.assert_free(raw, "job")


def test_nobody_overtakes_a_waiter(raw: redis.Redis, crowd: Crowd) -> None:
    lease = lock().acquire()
    for _ in range(50):
        future = crowd.queue_up(lock().acquire)
        lease.release()
        with pytest.raises(LatchBusy):  # whether or not the waiter has taken it over yet
            lock(timeout=0).acquire()
        lease = future.result(PATIENCE)
    lease.release()
    audit.assert_free(raw, "job")


def test_a_newcomer_queues_up_behind_the_waiters(crowd: Crowd, raw: redis.Redis) -> None:
    order = []

    def take(number: int) -> None:
        with lock():
            order.append(number)

    with lock():
        crowd.queue_up(take, 1)
        crowd.queue_up(take, 2)
    crowd.start(take, 3)
    crowd.results()
    assert order == [1, 2, 3]


def test_a_hand_over_takes_no_poll(crowd: Crowd, raw: redis.Redis) -> None:
    """The slice is 2 s: whoever enters in much less was told."""
    slowest = 0.0
    lease = lock().acquire()
    for _ in range(20):
        future = crowd.queue_up(lock().acquire)
        released = time.monotonic()
        lease.release()
        lease = future.result(PATIENCE)
        slowest = max(slowest, time.monotonic() - released)
    lease.release()
    assert slowest < 1.0


@brisk
def test_a_waiter_asks_once_a_slice(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    at, asked = store(), 0  # not counted at the server, to which the heartbeat may owe something
    park = at.park

    def counted(step: Any) -> Any:
        nonlocal asked
        asked += 1
        return park(step)

    monkeypatch.setattr(at, "park", counted)
    with lock(heartbeat=False):
        assert crowd.queue_up(lock(timeout=0.9).try_acquire).result(PATIENCE) is None
    # 0.9 s are 4.5 slices; and a last question at the end of its time.
    assert 2 <= asked <= 6


@brisk
@pytest.mark.parametrize("timeout", [0.02, 0.3, 0.7])
def test_a_timeout_is_never_early_and_names_the_facts(raw: redis.Redis, timeout: float) -> None:
    with lock(owner="the holder") as holder:
        begun = time.monotonic()
        with pytest.raises(LatchTimeout) as refused:
            lock(timeout=timeout).acquire()
        took = time.monotonic() - begun
        error = refused.value
        assert timeout <= took < timeout + 2
        assert error.waited is not None
        assert timeout - 0.001 <= error.waited <= took + 0.001
        assert error.name == "job"
        assert error.position == 1
        assert error.reason == "timeout"
        assert error.holder is not None
        assert error.holder["label"] == "the holder"
        assert error.holder["fence"] == holder.fence
        assert error.ttl_remaining is not None
        assert 15 < error.ttl_remaining <= 20
        assert waiters(raw) == 0
        assert set(audit.tombs(raw, "job").values()) == {"abandoned"}
    audit.assert_free(raw, "job")


def test_the_error_says_how_many_are_ahead(crowd: Crowd) -> None:
    with lock():
        for _ in range(3):
            crowd.queue_up(lambda: lock().acquire().release())
        with pytest.raises(LatchTimeout, match="3 ahead") as refused:
            lock(timeout=0.05).acquire()
        assert refused.value.position == 4
    crowd.results()


def test_one_hundred_may_wait(raw: redis.Redis) -> None:
    with lock() as holder:
        for number in range(100):
            send(request(token(number), timeout=10))
        begun = time.monotonic()
        with pytest.raises(LatchQueueFull) as refused:
            lock().acquire()
        assert time.monotonic() - begun < 2
        assert refused.value.reason == "full"
        assert refused.value.holder is not None
        assert refused.value.holder["fence"] == holder.fence
        with pytest.raises(LatchBusy):  # one try does not wait, so it is not too many
            lock(timeout=0).acquire()
        assert len(queue(raw)) == 100
    assert audit.kinds(raw, "job").count("refused") == 2


def test_a_try_never_counts_among_the_waiters(raw: redis.Redis) -> None:
    with lock():
        for _ in range(5):
            with pytest.raises(LatchBusy):
                lock(timeout=0, max_waiters=1).acquire()
            assert not raw.exists(audit.key("Q", "job"))
        with pytest.raises(LatchTimeout):
            lock(timeout=0.01, max_waiters=1).acquire()


def test_max_waiters_zero_lets_nobody_wait() -> None:
    with lock(max_waiters=0), pytest.raises(LatchQueueFull):
        lock(max_waiters=0).acquire()


def test_the_setting_limits_the_queue(crowd: Crowd) -> None:
    with latch_settings(MAX_WAITERS=2):
        with lock():
            for _ in range(2):
                crowd.queue_up(lambda: lock().acquire().release())
            with pytest.raises(LatchQueueFull, match="2 waiters"):
                lock().acquire()
            with pytest.raises(LatchTimeout):
                lock(max_waiters=3, timeout=0.01).acquire()
        crowd.results()


def test_whoever_was_let_in_is_not_sent_away_by_a_full_queue(raw: redis.Redis) -> None:
    """A waiter that was purged or lost comes back with its ticket."""
    with lock():
        ticket = send(request(token(1), timeout=10)).ticket
        for number in range(2, 101):
            send(request(token(number), timeout=10))
        raw.zrem(audit.key("Q", "job"), token(1))
        raw.zrem(audit.key("V", "job"), token(1))
        raw.hdel(audit.key("R", "job"), token(1))
        send(request(token(101), timeout=10))  # takes the free place
        reply = send(request(token(1), timeout=10, ticket=ticket))
        assert reply.ticket == ticket
        assert reply.ahead == 0
        assert waiters(raw) == 101


def test_a_refused_waiter_leaves_nothing(raw: redis.Redis) -> None:
    with lock():
        for _ in range(10):
            with pytest.raises(LatchTimeout):
                lock(timeout=0.01).acquire()
    audit.assert_free(raw, "job")


def test_a_latch_shared_by_waiting_threads_gives_each_its_own_lease(crowd: Crowd) -> None:
    shared = lock()
    inside: list[str] = []

    def take() -> str:
        with shared as lease:
            inside.append(lease.token)
            assert inside == [lease.token]
            time.sleep(0.001)
            inside.remove(lease.token)
            return lease.token

    for _ in range(20):
        crowd.start(take)
    assert len(set(crowd.results())) == 20


@pytest.fixture
def _switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_switching")
def test_idle_waiting_connections_are_shared_safely(crowd: Crowd, raw: redis.Redis) -> None:
    def wait() -> None:
        for _ in range(60):
            with pytest.raises(LatchTimeout):
                lock(timeout=0.004).acquire()

    with lock():
        for _ in range(16):
            crowd.start(wait)
        crowd.results()
        # Whoever had no answer in so short a time abandons in the background.
        until(lambda: waiters(raw) == 0)
    audit.assert_free(raw, "job")


@brisk
def test_a_lease_that_ends_by_max_hold_goes_to_the_waiter(crowd: Crowd, raw: redis.Redis) -> None:
    begun = time.monotonic()
    lease = lock(ttl=0.4, max_hold=0.7).acquire()
    other = crowd.queue_up(lock().acquire).result(PATIENCE)
    assert 0.6 < time.monotonic() - begun < 3
    assert lease.lost == "expired"
    other.ensure_held()
    assert other.fence > lease.fence
    other.release()
    assert BRISK["SLICE"] < 0.7  # the waiter's polls did not keep the holder alive
    until(lambda: audit.kinds(raw, "job")[-1] == "released")
    assert "expired" in audit.kinds(raw, "job")


@pytest.mark.usefixtures("valkey")
def test_a_hurried_caller_leaves_no_hurried_connection_behind(raw: redis.Redis) -> None:
    """A connection made within a caller's few milliseconds must not time others out as soon."""
    with latch_settings():  # a store of its own, so with new connections
        lock(timeout=0.2).acquire().release()
        raw.client_pause(500)  # every answer takes as long as that
        assert lock().inspect() is None
