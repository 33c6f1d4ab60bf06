"""The list of what is locked: its order, its pages, and what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
import redis

from django_latch import inventory, latch
from django_latch.core import verbs
from django_latch.report import report
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.aliases import locks_at
from tests.integration.calls import A, grant, request
from tests.integration.proxy import proxy


def fill(count: int) -> None:
    """So many locks; the later its number, the later a lock's end."""
    calls = [request(A, name=f"job {n:05d}", ttl=600 + n) for n in range(count)]
    for start in range(0, count, 500):
        store().pipeline(calls[start : start + 500])


def names(locks: list[inventory.LockInfo]) -> list[int]:
    return [int(lock.name.split()[1]) for lock in locks]


def test_pages_are_ordered_by_expiry() -> None:
    fill(25)
    assert inventory.count() == 25
    assert names(inventory.page(0, 10)) == list(range(10))
    assert names(inventory.page(10, 10)) == list(range(10, 20))
    assert names(inventory.page(20, 10)) == list(range(20, 25))
    assert names(inventory.page(0, 3, reverse=True)) == [24, 23, 22]
    assert inventory.page(99, 10) == []
    assert inventory.page(0, 0) == []


def test_a_scan_says_whether_it_was_cut() -> None:
    fill(12)
    every, cut = inventory.scan()
    assert (names(every), cut) == (list(range(12)), False)
    some, cut = inventory.scan(5)
    assert (names(some), cut) == ([0, 1, 2, 3, 4], True)
    assert inventory.scan(12)[1] is False


@pytest.mark.parametrize("count", [10, 3000])
def test_a_page_costs_two_round_trips_however_many_locks_there_are(
    raw: redis.Redis, count: int
) -> None:
    with proxy() as network, locks_at(network.url):
        fill(count)
        inventory.page(0, 5)  # the scripts are known from now on
        for read, most in (
            (lambda: inventory.page(0, 100), 2),
            (inventory.count, 1),
            (lambda: inventory.get("job 00003"), 1),
        ):
            network.passed.clear()
            read()  # type: ignore[operator]
            assert len(network.passed) <= most + count_pieces(network.passed)
    raw.flushdb()


def count_pieces(passed: list[bytes]) -> int:
    """A pipeline of 100 calls comes in pieces of 64 kB."""
    return sum(map(len, passed)) // 65536


def test_what_is_told_of_a_lock() -> None:
    first = latch("job", timeout=0, limit=2, ttl=60, owner="one", meta={"a": 1}).acquire()
    second = latch("job", timeout=0, limit=3, ttl=90, owner="two").acquire()
    store().call(request(A, timeout=10))
    lock = inventory.get("job")
    assert lock is not None
    assert (lock.name, lock.waiters, lock.limit) == ("job", 1, 2)
    assert [holder.owner.label for holder in lock.holders] == ["one", "two"]
    holder = lock.holders[0]
    assert lock.holder == holder
    assert (holder.state, holder.fence, holder.ttl) == ("held", first.fence, 60)
    assert 0 <= holder.held_for < 2
    assert 58 < holder.expires_in <= 60
    assert holder.acquired_at.utcoffset() is not None
    assert (holder.expires_at - holder.acquired_at).total_seconds() == 60
    shown = json.dumps(lock.as_dict())
    for token in (first.token, second.token, A):
        assert token not in shown
    store().call(verbs.end("job", A, "abandoned"))
    first.release()
    second.release()


@pytest.mark.parametrize(
    "state",
    [
        lambda: latch("job", timeout=0).acquire().release(),
        lambda: grant(ttl=0.02),
        lambda: None,
    ],
    ids=["released", "expired", "never"],
)
def test_what_is_over_is_not_told(raw: redis.Redis, state: Callable[[], object]) -> None:
    state()
    time.sleep(0.03)
    assert inventory.get("job") is None
    assert inventory.page(0, 10) == []


def test_a_lock_with_waiters_only_is_told(raw: redis.Redis) -> None:
    grant(A, ttl=5)
    store().call(request("b" * 40, timeout=10))
    raw.hdel(audit.key("R", "job"), "@", A)
    lock = inventory.get("job")
    assert lock is not None
    assert (lock.holder, lock.waiters) == (None, 1)


def test_hostile_names_and_owners_are_told_as_text(raw: redis.Redis) -> None:
    evil = "<script>alert(1)</script>\u202e"
    with latch("a <b> & 'c' \"d\"", timeout=0, owner=evil):
        (lock,) = inventory.page(0, 10)
        assert lock.name == "a <b> & 'c' \"d\""
        assert lock.holder is not None
        assert "\u202e" not in lock.holder.owner.describe()
        assert "\u202e" not in json.dumps(lock.as_dict(), ensure_ascii=False)


def test_durations_of_events_are_seconds_as_all_others() -> None:
    with latch("job", timeout=0):
        time.sleep(0.1)
    released, acquired = report("job").events
    assert acquired.more == {"waited": 0.0}
    held = released.more["held"]
    assert isinstance(held, float)
    assert 0.1 <= held < 2
    assert released.as_dict()["held"] == held
    assert f"held {held:.1f} s" in released.describe()
