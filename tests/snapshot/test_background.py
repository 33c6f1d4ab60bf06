"""Computes in a thread; in a Celery worker: tests/snapshot/test_celery.py."""

from __future__ import annotations

import time

import pytest
import redis

from django_latch import LatchTimeout, LatchValueError, current_lease, snapshot
from django_latch.snapshots.description import store_name
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_s18_so_does_what_is_no_exception(raw: redis.Redis) -> None:
    begun: list[int] = []

    def leave() -> None:
        begun.append(1)
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        snapshot(NAME, leave, wait=10, refresh="thread")
    assert len(begun) <= 2, "nobody is elected again and again"
    until(lambda: audit.records(raw, LOCK) == {})


def test_s4_a_stale_value_is_given_however_soon_the_thread_fails(raw: redis.Redis) -> None:
    for number in range(20):
        name = f"{NAME}:{number}"
        shared = snapshot(name, fresh_for=0.01, keep_for=60, refresh="thread")
        snapshot(name, lambda: "old", fresh_for=0.01, keep_for=60)
        time.sleep(0.02)
        assert shared.get(lambda: 1 / 0) == "old"
    until(lambda: not any(audit.records(raw, store_name(f"{NAME}:{n}", 1)) for n in range(20)))


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
