"""Snapshots with BACKEND="memory", as test suites of projects use them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from django_latch import LatchTimeout, snapshot
from django_latch.core import snapshot as calls
from django_latch.core.tokens import new_token
from django_latch.store.memory import MemoryStore
from django_latch.testing import assert_free, memory_locks
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, together


@pytest.fixture
def memory() -> Iterator[MemoryStore]:
    with memory_locks() as store:
        yield store


def test_one_compute_for_all(memory: MemoryStore, sweep: Sweep) -> None:
    sweep.takes = 0.2
    shared = snapshot(NAME, fresh_for=60, wait=10)
    assert together(10, shared.get, sweep) == [1] * 10
    assert sweep.runs == 1
    assert_free(LOCK)


def test_time_passes(memory: MemoryStore, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, keep_for=300)
    assert shared.get(sweep) == 1
    memory.advance(61)
    report = shared.peek()
    assert (report.state, report.value) == ("stale", 1)
    assert 61 <= report.age < 62
    assert shared.get(sweep) == 2
    memory.advance(301)
    assert shared.peek().state == "miss"


def test_stale_busy_invalidate_and_failure(memory: MemoryStore, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, keep_for=300, wait=10)
    shared.get(sweep)
    memory.advance(100)
    with sweep.held():
        refresh = call(shared.report, sweep)
        sweep.await_begin()
        assert shared.report(sweep).outcome == "stale"
        shared.invalidate()
        assert shared.get(lambda: "new") == "new"
    assert refresh.result(10).fence == 0
    with pytest.raises(ZeroDivisionError):
        snapshot("other", lambda: 1 / 0)
    assert snapshot("other").peek().failures == 1
    with pytest.raises(LatchTimeout):
        snapshot("other", sweep, wait=0)
    memory.advance(1)
    assert snapshot("other", sweep, wait=0) == 3


def test_takeover_when_the_lease_ends(memory: MemoryStore, sweep: Sweep) -> None:
    wanted = snapshot(NAME).place().wanted
    assert memory.call(calls.read(wanted, "{}", new_token())).role == "elected"
    assert memory.call(calls.read(wanted, "{}", new_token())).role == "busy"
    memory.advance(11)
    assert snapshot(NAME).report(sweep).outcome == "takeover"


def test_in_event_loops(memory: MemoryStore, sweep: Sweep) -> None:
    sweep.takes = 0.1
    shared = snapshot(NAME, fresh_for=60, wait=10)

    async def main() -> list[int]:
        return await asyncio.gather(*(shared.aget(sweep.a) for _ in range(10)))

    assert asyncio.run(main()) == [1] * 10
    assert sweep.runs == 1


def test_what_a_reader_gets_is_a_copy(memory: MemoryStore) -> None:
    shared = snapshot(NAME)
    shared.get(lambda: {"checks": []})
    shared.get(dict)["checks"].append("mine")
    assert shared.get(dict) == {"checks": []}
