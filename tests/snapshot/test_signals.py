"""What is told about calls and computes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis

from django_latch import LatchComputeFailed, LatchTimeout, LatchUnavailable, snapshot
from django_latch.signals import snapshot_computed, snapshot_served
from tests.integration.aliases import locks_at
from tests.snapshot.sweeps import NAME, Sweep, call
from tests.snapshot.test_election import refresher  # noqa: F401

Heard = list[dict[str, object]]


@pytest.fixture
def served() -> Iterator[Heard]:
    yield from listening(snapshot_served)


@pytest.fixture
def computed() -> Iterator[Heard]:
    yield from listening(snapshot_computed)


def listening(signal: object) -> Iterator[Heard]:
    heard: Heard = []

    def hear(sender: object, signal: object, **payload: object) -> None:
        heard.append(payload)

    signal.connect(hear)  # type: ignore[attr-defined]
    yield heard
    signal.disconnect(hear)  # type: ignore[attr-defined]


def outcomes(heard: Heard) -> list[object]:
    return [payload["outcome"] for payload in heard]


def test_s34_miss_hit_stale_and_seconds(served: Heard, computed: Heard, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.2, keep_for=60)
    sweep.takes = 0.1
    shared.get(sweep)
    shared.get(sweep)
    time.sleep(0.3)
    with sweep.held():
        refresh = call(shared.get, sweep)
        sweep.await_begin()
        shared.get(sweep)
    refresh.result(10)
    assert outcomes(served) == ["miss", "hit", "stale", "miss"]
    assert outcomes(computed) == ["published", "published"]
    first, last = served[0], served[2]
    assert first["name"] == NAME
    assert 0 <= first["waited"] < 5  # type: ignore[operator]
    assert 0.3 <= last["age"] < 5  # type: ignore[operator]
    assert 0.1 <= computed[0]["took"] < 5  # type: ignore[operator]
    assert computed[0]["fence"] < computed[1]["fence"]  # type: ignore[operator]


def test_s34_wait_pending_timeout_and_superseded(
    served: Heard, computed: Heard, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        waiter = call(shared.get, sweep)
        shared.replace(wait=0.05, on_busy="pending").get(sweep)
        with pytest.raises(LatchTimeout):
            shared.replace(wait=0.05).get(sweep)
    first.result(10)
    waiter.result(10)
    assert sorted(map(str, outcomes(served))) == ["miss", "pending", "timeout", "wait"]
    with sweep.held():
        shared.invalidate()
        old = call(shared.get, sweep)
        sweep.await_begin()
        shared.invalidate()
    old.result(10)
    assert outcomes(computed) == ["published", "superseded"]


def test_s34_takeover(
    raw: redis.Redis,
    served: Heard,
    sweep: Sweep,
    refresher: object,  # noqa: F811
) -> None:
    refresher.kill()  # type: ignore[attr-defined]
    snapshot(NAME, sweep, ttl=1, wait=10)
    assert outcomes(served) == ["takeover"]


def test_s34_outage_and_failure(served: Heard, computed: Heard, sweep: Sweep) -> None:
    with locks_at("redis://127.0.0.1:1/0"):
        with pytest.raises(LatchUnavailable):
            snapshot(NAME, sweep)
        snapshot(NAME, sweep, on_outage="compute")
    with pytest.raises(ZeroDivisionError):
        snapshot(NAME, lambda: 1 / 0)
    with pytest.raises(LatchComputeFailed):
        snapshot(NAME, sweep, on_error="raise")
    assert outcomes(served) == ["outage", "outage", "failed"]
    assert outcomes(computed) == ["failed"]
