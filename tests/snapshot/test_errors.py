"""Computes that fail."""

from __future__ import annotations

import time

import pytest
import redis

from django_latch import LatchComputeFailed, LatchTimeout, snapshot
from tests.integration import audit
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call
from tests.snapshot.test_election import waiting


class Broken(Exception):
    """Of the project."""


def fail() -> None:
    raise Broken("the sweep is broken\nin two lines")


@pytest.mark.usefixtures("apart")
def test_s18_the_error_reaches_the_leader_and_the_next_waiter_computes(
    raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    error = Broken("of the first")

    def first() -> int:
        sweep()
        raise error

    with sweep.held():
        leader = call(shared.get, first)
        sweep.await_begin()
        waiters = [call(shared.report, sweep) for _ in range(4)]
        until(lambda: waiting(raw) == 4)
    with pytest.raises(Broken) as raised:
        leader.result(10)
    assert raised.value is error
    reports = [waiter.result(10) for waiter in waiters]
    assert {report.value for report in reports} == {2}
    assert sorted(report.outcome for report in reports) == ["miss", *["wait"] * 3]
    assert sweep.runs == 2


@pytest.mark.parametrize("on_error", ["raise", "stale"])
def test_s18_or_the_waiters_raise(on_error: str, raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10, on_error=on_error)

    def first() -> None:
        sweep()
        fail()

    with sweep.held():
        leader = call(shared.get, first)
        sweep.await_begin()
        waiter = call(shared.get, sweep)
        until(lambda: waiting(raw) == 1)
    with pytest.raises(Broken):
        leader.result(10)
    with pytest.raises(LatchComputeFailed, match="Broken: the sweep is broken") as failed:
        waiter.result(10)
    assert failed.value.failures == 1
    assert failed.value.retry_after == 1
    assert sweep.runs == 1


@pytest.mark.parametrize("on_error", ["next", "raise", "stale"])
def test_s19_a_failure_is_remembered_beside_the_last_good_value(
    on_error: str, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=0.05, keep_for=60, wait=10, on_error=on_error)
    shared.get(sweep)
    time.sleep(0.1)
    with pytest.raises(Broken):
        shared.get(fail)
    report = shared.report(sweep)
    assert (report.value, report.outcome) == (1, "stale")
    assert (report.failures, report.error) == (1, "Broken: the sweep is broken�in two lines")
    assert 0 < report.retry_in <= 0.25
    assert sweep.runs == 1, "not at once"
    time.sleep(0.3)
    assert shared.get(sweep) == 2
    assert shared.peek().failures == 0, "forgotten with the next value"


def test_s19_the_pause_doubles(raw: redis.Redis) -> None:
    shared = snapshot(NAME, fresh_for=0.01, keep_for=60, wait=0)
    shared.get(lambda: 1)
    pauses = []
    for failures in (1, 2, 3):
        until(lambda: shared.peek().retry_in == 0)
        until(lambda: shared.peek().state == "stale")
        with pytest.raises(Broken):
            shared.get(fail)
        report = shared.peek()
        assert report.failures == failures
        pauses.append(report.retry_in)
    for pause, most in zip(pauses, (0.25, 0.5, 1.0), strict=True):
        assert most / 2 < pause <= most


def test_s19_the_pause_has_a_bound(raw: redis.Redis) -> None:
    raw.hset(audit.key("S", LOCK), "e", "40|0|Broken")
    raw.pexpire(audit.key("S", LOCK), 60_000)
    with pytest.raises(Broken):
        snapshot(NAME, wait=0).get(fail)
    assert 20 < snapshot(NAME).peek().retry_in <= 30


def test_a_caller_within_the_pause_waits_for_its_end(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    with pytest.raises(Broken):
        shared.get(fail)
    begun = time.monotonic()
    assert shared.get(sweep) == 1
    assert 0.1 < time.monotonic() - begun < 0.25 + 2


def test_a_caller_without_time_is_told_why(sweep: Sweep) -> None:
    with pytest.raises(Broken):
        snapshot(NAME, fail)
    with pytest.raises(LatchTimeout, match="its last compute failed: Broken"):
        snapshot(NAME, sweep, wait=0)


def test_a_permit_is_no_way_round_the_pause(raw: redis.Redis, sweep: Sweep) -> None:
    raw.hset(audit.key("S", LOCK), "e", f"5|{audit.now(raw) + 20_000}|Broken")
    raw.pexpire(audit.key("S", LOCK), 60_000)
    with pytest.raises(LatchTimeout, match="its last compute failed"):
        snapshot(NAME, sweep, wait=0.1, on_busy="compute")
    assert sweep.runs == 0


def test_a_value_that_cannot_be_written_is_a_failure(raw: redis.Redis) -> None:
    with pytest.raises(Exception, match="pickle") as raised:
        snapshot(NAME, lambda: (n for n in ()))
    assert not isinstance(raised.value, LatchComputeFailed)
    assert snapshot(NAME).peek().failures == 1
    audit.assert_free(raw, LOCK)
