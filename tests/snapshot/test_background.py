"""Computes in a thread; in a Celery worker: tests/snapshot/test_celery.py."""

from __future__ import annotations

import time

import pytest
import redis

from django_latch import LatchTimeout, LatchValueError, current_lease, snapshot
from tests.integration import audit
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call


def test_s5_a_thread_refreshes_and_the_caller_gets_the_stale_value(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.05, keep_for=60, wait=10, refresh="thread")
    assert shared.get(sweep) == 1
    time.sleep(0.1)
    with sweep.held():
        assert shared.report(sweep).outcome == "stale"
        sweep.await_begin()
        assert shared.report(sweep).value == 1
    until(lambda: shared.peek().value == 2)
    assert sweep.runs == 2


def test_s5_the_callers_wait_is_bounded_and_the_thread_goes_on(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=0.2, refresh="thread")
    with sweep.held():
        begun = time.monotonic()
        with pytest.raises(LatchTimeout):
            shared.get(sweep)
        assert time.monotonic() - begun < 0.2 + 2
    until(lambda: shared.peek().state == "hit")
    assert shared.get(sweep) == 1


def test_s18_the_error_of_the_thread_reaches_the_caller_that_began_it(
    raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("of the thread")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="of the thread") as raised:
        snapshot(NAME, fail, wait=10, refresh="thread")
    assert raised.value is error
    until(lambda: audit.records(raw, LOCK) == {})
    audit.assert_free(raw, LOCK)
    until(lambda: "could not be computed" in caplog.text)


def test_s8_the_lease_is_the_threads(raw: redis.Redis, sweep: Sweep) -> None:
    fences: list[int] = []

    def compute() -> int:
        lease = current_lease()
        assert lease is not None
        fences.append(lease.fence)
        return sweep()

    shared = snapshot(NAME, fresh_for=60, wait=10, ttl=0.5, refresh="thread")
    with sweep.held():
        first = call(shared.report, compute)
        sweep.await_begin()
        time.sleep(1.2)
        assert len(audit.records(raw, LOCK)) == 1, "renewed"
    assert first.result(10).fence == fences[0]


def test_celery_is_for_decorated_functions(sweep: Sweep) -> None:
    with pytest.raises(LatchValueError, match="decorate the function with @snapshot"):
        snapshot(NAME, sweep, refresh="celery")

    @snapshot(NAME, refresh="celery")
    def local() -> int:
        return 1

    with pytest.raises(LatchValueError, match="move the function to a module"):
        local()
