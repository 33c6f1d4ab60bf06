"""Several holders at once, also where callers disagree on how many."""

from __future__ import annotations

import threading
import time

import pytest
import redis

from django_latch import Latch, LatchBusy, latch
from django_latch.core import verbs
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.until import until


def lock(limit: int = 1, **options: object) -> Latch:
    return latch("job", **{"timeout": 0, "limit": limit, **options})  # type: ignore[arg-type]


def test_as_many_hold_as_the_limit_says(raw: redis.Redis) -> None:
    leases = [lock(3).acquire() for _ in range(3)]
    assert len({lease.fence for lease in leases}) == 3
    with pytest.raises(LatchBusy):
        lock(3).acquire()
    audit.assert_sound(raw)
    leases[1].release()
    leases[1] = lock(3).acquire()
    assert leases[1].fence > leases[2].fence
    for lease in leases:
        lease.renew()
        lease.release()
    audit.assert_free(raw, "job")


@pytest.mark.parametrize(
    ("holders", "newcomer", "fits"),
    [
        ([1], 1, False),
        ([1], 2, False),  # never walks into an exclusive lock
        ([2], 1, False),  # nor makes a shared one exclusive
        ([2], 2, True),
        ([2], 3, True),
        ([3, 3], 2, False),
        ([2, 2], 3, False),  # each holder's own limit stays true
        ([3, 2], 3, False),
        ([3, 3], 3, True),
    ],
)
def test_callers_with_different_limits(holders: list[int], newcomer: int, fits: bool) -> None:
    leases = [lock(limit).acquire() for limit in holders]
    lease = lock(newcomer).try_acquire()
    assert (lease is not None) == fits
    for each in [*leases, *([lease] if lease else [])]:
        each.release()


def test_each_holder_has_an_expiry_of_its_own(raw: redis.Redis) -> None:
    short = lock(2, ttl=0.1, heartbeat=False).acquire()
    long = lock(2, ttl=20, heartbeat=False).acquire()
    score = raw.zscore(audit.key("index"), "job")
    assert score == audit.records(raw, "job")[long.token].exp  # the last of them
    time.sleep(0.12)
    assert short.lost == "expired"
    third = lock(2).acquire()
    assert set(audit.listed(raw, "job")) == {long.token, third.token}
    long.ensure_held()
    long.release()
    third.release()
    audit.assert_free(raw, "job")


def test_a_long_hold_outlives_the_short_ones_and_the_waiters_beside_it(raw: redis.Redis) -> None:
    long = lock(2, ttl=600).acquire()
    short = lock(2, ttl=1).acquire()
    for step in (
        short.renew,
        lambda: lock(2, ttl=1).try_acquire(),
        lambda: lock(2, ttl=1, timeout=0.05).try_acquire(),
        short.release,
        lambda: lock(2, ttl=1).acquire().release(),
        lambda: store().call(verbs.trim("job")),
    ):
        step()
        audit.assert_sound(raw)
        assert raw.pttl(audit.key("R", "job")) > 599_000
    long.release()


def test_the_holder_told_of_is_the_one_who_is_free_first() -> None:
    with lock(2, ttl=60, owner="slow"), lock(2, ttl=20, owner="quick"):
        with pytest.raises(LatchBusy) as refused:
            lock(2).acquire()
        assert refused.value.holder is not None
        assert refused.value.holder["label"] == "quick"
        assert 19 < (refused.value.ttl_remaining or 0) <= 20


def test_a_waiter_gets_the_permit_that_becomes_free(raw: redis.Redis) -> None:
    first, second = lock(2).acquire(), lock(2).acquire()
    got: list[int] = []

    def wait() -> None:
        with lock(2, timeout=5) as lease:
            got.append(lease.fence)

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: raw.zcard(audit.key("Q", "job")) == 1)
    assert lock(2).try_acquire() is None
    second.release()
    waiter.join(5)
    assert got[0] > second.fence
    first.release()
    audit.assert_free(raw, "job")
