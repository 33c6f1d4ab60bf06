"""Waiting for somebody else's compute: woken at once, for a budget, and then what."""

from __future__ import annotations

import time

import pytest
import redis

from django_latch import LatchTimeout, Pending, snapshot
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at
from tests.integration.until import until
from tests.snapshot.slow import slow
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, elected, together
from tests.snapshot.test_election import waiting


@pytest.mark.usefixtures("apart")
def test_s6_all_waiters_are_woken_by_the_publication(raw: redis.Redis, sweep: Sweep) -> None:
    woken: list[float] = []
    shared = snapshot(NAME, fresh_for=60, wait=10)

    def wait() -> int:
        value: int = shared.get(sweep)
        woken.append(time.monotonic())
        return value

    with latch_settings(SLICE=8, LIVE=9, CLAIM=9):
        with sweep.held():
            first = call(shared.get, sweep)
            sweep.await_begin()
            waiters = [call(wait) for _ in range(10)]
            until(lambda: waiting(raw) == 10)
            raw.config_resetstat()
            began = time.monotonic()
        assert first.result(10) == 1
        assert [waiter.result(10) for waiter in waiters] == [1] * 10
    assert raw.info("commandstats")["cmdstat_xadd"]["calls"] <= 2, "one, and the event's own"
    # Woken, and not by a slice's end. On a quiet machine it is about 2 ms.
    assert sorted(woken)[len(woken) // 2] - began < 1


def test_s6_a_lost_wake_up_costs_a_slice(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10, ttl=60)
    with latch_settings(SLICE=0.3):
        with sweep.held():
            first = call(shared.get, sweep)
            sweep.await_begin()
            waiter = call(shared.get, sweep)
            until(lambda: waiting(raw) == 1)
            # Somebody freed the lock and nobody was told.
            raw.hset(audit.key("S", LOCK), mapping={"v:": "7", "m": facts(raw)})
            began = time.monotonic()
            assert waiter.result(10) == 7
            assert time.monotonic() - began < 0.3 + 2
        first.result(10)


def facts(raw: redis.Redis) -> str:
    now = audit.now(raw)
    return f"1|{now}|{now + 60_000}|{now + 60_000}|5"


def test_s12_s13_the_wait_never_exceeds_its_budget(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=0.5)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        begun = time.monotonic()
        with pytest.raises(LatchTimeout) as late:
            shared.get(sweep)
        took = time.monotonic() - begun
    assert 0.3 < took < 0.5 + 2
    assert 0.3 < late.value.waited < 0.6
    assert late.value.name == NAME
    first.result(10)


def test_s13_no_wait_and_no_sleep_at_all_with_a_budget_of_0(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=0)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        begun = time.monotonic()
        with pytest.raises(LatchTimeout):
            shared.get(sweep)
        assert time.monotonic() - begun < 2
    assert first.result(10) == 1


def test_s11_a_latency_of_900_ms_is_no_outage(raw: redis.Redis, sweep: Sweep) -> None:
    with sweep.held():
        first = call(snapshot(NAME, fresh_for=60, wait=3).get, sweep)
        sweep.await_begin()
        with slow(0.9) as way, locks_at(way.url):
            begun = time.monotonic()
            report = snapshot(NAME, fresh_for=60, wait=3, on_busy="pending").report(sweep)
            took = time.monotonic() - begun
            assert report.outcome == "pending"
            assert took < 3 + 0.9 + 2, "the budget, and a command at the most"
        until(lambda: len(elected(raw)) == 1)
    assert first.result(10) == 1
    assert sweep.runs == 1


def test_s11_a_latency_beyond_the_budget_is_time_spent_and_no_outage(sweep: Sweep) -> None:
    with slow(0.4) as way, locks_at(way.url):
        with pytest.raises(LatchTimeout, match="the store took longer"):
            snapshot(NAME, sweep, wait=0.1)
        # Nor is there a back-off for the next one.
        assert snapshot(NAME, sweep, fresh_for=60, wait=10) == 1


def test_s14_compute_takes_one_of_the_permits(raw: redis.Redis, sweep: Sweep) -> None:
    """20 callers of a compute longer than their budget: not 20 computes."""
    sweep.takes = 1.5
    shared = snapshot(NAME, fresh_for=60, wait=0.5, on_busy="compute", permits=2)
    got = together(20, shared.get, sweep)
    assert sweep.runs == 1 + 2
    refused = [one for one in got if isinstance(one, LatchTimeout)]
    values = [one for one in got if isinstance(one, int)]
    assert len(refused) + len(values) == 20
    assert len(values) == 3
    # What was begun last is what is kept.
    assert shared.get(sweep) in (2, 3)
    audit.assert_free(raw, LOCK)
    audit.assert_free(raw, f"{LOCK}:permits")


def test_s14_pending(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=0.1, on_busy="pending")
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        value = shared.get(sweep)
        assert isinstance(value, Pending)
        assert not value
        assert (value.name, value.retry_after) == (NAME, 1)
    assert first.result(10) == 1


@pytest.mark.parametrize("on_busy", ["stale", "raise", "pending", "compute"])
def test_s4_a_stale_value_is_never_waited_for(on_busy: str, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.05, keep_for=60, wait=10, on_busy=on_busy)
    shared.get(sweep)
    time.sleep(0.1)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        begun = time.monotonic()
        assert shared.report(sweep).outcome == "stale"
        assert time.monotonic() - begun < 3
    assert first.result(10) == 2
