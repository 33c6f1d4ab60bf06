"""The advisory search for deadlocks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchDeadlock, LatchTimeout, latch
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at
from tests.integration.programs import PREAMBLE, program
from tests.integration.proxy import proxy
from tests.integration.until import until
from tests.waiting.crowd import BRISK, PATIENCE, Crowd, settled, waiters

LIVE = BRISK["LIVE"]

SEARCHING = {**BRISK, "DEADLOCKS": True}


@pytest.fixture
def _searching() -> Iterator[None]:
    with latch_settings(**SEARCHING):
        yield


searching = pytest.mark.usefixtures("_searching")


def lock(name: str, **options: Any) -> Latch:
    return latch(name, **{"ttl": 20, "timeout": PATIENCE, **options})


def circle(crowd: Crowd, names: Sequence[str]) -> list[LatchDeadlock | None]:
    """Threads that hold one each and want the next one's; what each of them met."""
    all_hold = threading.Barrier(len(names))

    def work(at: int) -> LatchDeadlock | None:
        with lock(names[at]):
            all_hold.wait(PATIENCE)
            try:
                with lock(names[(at + 1) % len(names)]):
                    return None
            except LatchDeadlock as error:
                return error

    futures = [crowd.start(work, at) for at in range(len(names))]
    return [future.result(PATIENCE) for future in futures]


@searching
def test_whoever_handed_a_lock_on_may_wait_for_it(raw: redis.Redis) -> None:
    lock("job").acquire().detach()
    with pytest.raises(LatchTimeout):
        lock("job", timeout=2 * LIVE + 0.3).acquire()


@searching
@pytest.mark.parametrize("count", [2, 3])
def test_exactly_one_of_the_threads_gives_way(raw: redis.Redis, crowd: Crowd, count: int) -> None:
    names = ["a", "b", "c"][:count]
    begun = time.monotonic()
    outcomes = circle(crowd, names)
    took = time.monotonic() - begun
    (error,) = [outcome for outcome in outcomes if outcome is not None]
    # Seen twice, and the second time no entry of the first can count any more.
    assert LIVE <= took < 2 * LIVE + 3
    assert error.reason == "deadlock"
    assert error.waited is not None
    assert error.waited >= LIVE
    cycle = error.cycle
    assert sorted(link["holds"] for link in cycle) == names
    assert sorted(link["waits"] for link in cycle) == names
    assert len({link["agent"] for link in cycle}) == count
    assert all(link["holds"] != link["waits"] for link in cycle)
    audit.assert_nothing_held(raw)


@searching
def test_a_thread_that_waits_for_itself(raw: redis.Redis) -> None:
    with lock("a"):
        with pytest.raises(LatchDeadlock) as found:
            lock("a").acquire()
        (link,) = found.value.cycle
        assert link["holds"] == link["waits"] == "a"
        assert waiters(raw, "a") == 0
    audit.assert_nothing_held(raw)


@searching
@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.chaos), 3])
def test_exactly_one_of_the_tasks_gives_way(raw: redis.Redis, count: int) -> None:
    names = ["a", "b", "c"][:count]

    async def work(at: int, all_hold: asyncio.Barrier) -> str:
        async with lock(names[at]):
            await all_hold.wait()
            try:
                async with lock(names[(at + 1) % count]):
                    return "held both"
            except LatchDeadlock:
                return "gave way"

    async def main() -> list[str]:
        all_hold = asyncio.Barrier(count)
        return await asyncio.gather(*(work(at, all_hold) for at in range(count)))

    outcomes = asyncio.run(main())
    assert sorted(outcomes) == ["gave way"] + ["held both"] * (count - 1)
    audit.assert_nothing_held(raw)


CROSS = """
first, second = hear().split()
with latch(first, ttl=20):
    say("holds")
    hear()
    try:
        with latch(second, ttl=20, timeout=20):
            say("held both")
    except LatchDeadlock as error:
        say("gave way", len(error.cycle))
"""


def test_exactly_one_of_the_processes_gives_way(raw: redis.Redis) -> None:
    setup = PREAMBLE + settled(**SEARCHING)
    with program(CROSS, setup=setup) as one, program(CROSS, setup=setup) as other:
        one.say("a b")
        other.say("b a")
        for each in (one, other):
            each.expect("holds")
        for each in (one, other):
            each.say("go")
        assert sorted([one.hear(), other.hear()]) == ["gave way 2", "held both"]
        assert one.end() == other.end() == 0
    audit.assert_nothing_held(raw)


@searching
def test_waiters_outside_the_circle_are_served(raw: redis.Redis, crowd: Crowd) -> None:
    """They wait for a lock of the circle, and are no part of it."""
    outsiders = []
    with lock("a"):
        outsiders = [crowd.queue_up(lambda: lock("a").acquire().release(), name="a")]
    outsiders[0].result(PATIENCE)

    both_hold = threading.Barrier(3)
    outcomes: list[str] = []

    def cross(first: str, second: str) -> None:
        with lock(first):
            both_hold.wait(PATIENCE)
            try:
                with lock(second):
                    outcomes.append("held both")
            except LatchDeadlock:
                outcomes.append("gave way")

    crowd.start(cross, "a", "b")
    crowd.start(cross, "b", "a")
    both_hold.wait(PATIENCE)
    for name in ("a", "b", "a"):
        crowd.start(lambda name=name: lock(name).acquire().release())
    crowd.results()
    assert sorted(outcomes) == ["gave way", "held both"]
    audit.assert_nothing_held(raw)


@pytest.mark.chaos
@searching
def test_heavy_waiting_in_one_order_is_no_deadlock(raw: redis.Redis, crowd: Crowd) -> None:
    """For several times the length of a search, with holders that are slow."""
    end = time.monotonic() + 2.5 * LIVE
    names = ["a", "b", "c"]

    def work(skip: str) -> int:
        count = 0
        while time.monotonic() < end:
            first, second = [name for name in names if name != skip]
            with lock(first), lock(second):
                time.sleep(0.02)
                count += 1
        return count

    for number in range(9):
        crowd.start(work, names[number % 3])
    assert min(crowd.results()) > 0
    audit.assert_nothing_held(raw)


@pytest.mark.chaos
@searching
def test_a_long_chain_is_no_deadlock(raw: redis.Redis, crowd: Crowd) -> None:
    """Each waits for the next one's lock; the last one's holder waits for nothing."""
    with lock("lock 5"):

        def work(number: int) -> None:
            with lock(f"lock {number}"), lock(f"lock {number + 1}"):
                pass

        for number in reversed(range(5)):
            crowd.queue_up(work, number, name=f"lock {number + 1}")
        time.sleep(2 * LIVE)  # long enough to be sure of a circle, if there were one
    crowd.results()
    audit.assert_nothing_held(raw)


@searching
def test_a_waiter_that_gave_up_is_no_part_of_a_circle(raw: redis.Redis, crowd: Crowd) -> None:
    """It says for a while longer that it waits, and holds what another now waits for."""
    with lock("a"):
        done = threading.Event()

        def gives_up() -> None:
            with lock("b"):
                with pytest.raises(LatchTimeout):
                    lock("a", timeout=0.1).acquire()
                assert done.wait(PATIENCE)

        crowd.start(gives_up)
        until(lambda: audit.tombs(raw, "a"))
        threading.Timer(1.5 * LIVE, done.set).start()
        lock("b").acquire().release()
    crowd.results()
    audit.assert_nothing_held(raw)


@pytest.mark.chaos
@searching
def test_with_permits_nobody_gives_way(raw: redis.Redis, crowd: Crowd) -> None:
    """Any of several holders may release first."""
    with lock("a", limit=2):

        def crossing() -> None:
            with lock("b"), lock("a", limit=2, timeout=2 * LIVE):
                pass

        with lock("a", limit=2) as other:
            future = crowd.queue_up(crossing, name="a")
            with pytest.raises(LatchTimeout):
                lock("b", timeout=1.6 * LIVE).acquire()
            other.ensure_held()
        future.result(PATIENCE)
    audit.assert_nothing_held(raw)


def test_off_by_default_it_costs_nothing(raw: redis.Redis, crowd: Crowd) -> None:
    with proxy() as network, locks_at(network.url), latch_settings(**BRISK), lock("a"):
        with pytest.raises(LatchTimeout):
            lock("a", timeout=0.7).acquire()
        assert len(network.calls("request")) >= 3  # one a slice
        assert network.calls("waits") == []
        assert not raw.exists(audit.key("waits"))
        (record,) = [r for r in audit.records(raw, "a").values() if r.state == "held"]
        assert "agent" not in record.raw
    audit.assert_nothing_held(raw)


@pytest.mark.chaos
@searching
def test_those_that_waited_are_forgotten(raw: redis.Redis, crowd: Crowd) -> None:
    """What they said ends with them, however many threads and tasks there were."""

    async def wait() -> None:
        with pytest.raises(LatchTimeout):
            await lock("a", timeout=0.05, max_waiters=1000).aacquire()

    async def main() -> None:
        async with lock("a"):
            for _ in range(4):
                await asyncio.gather(*(wait() for _ in range(100)))
                await asyncio.sleep(LIVE / 2)

    asyncio.run(main())
    assert raw.hlen(audit.key("waits")) < 350
    assert 0 < raw.pttl(audit.key("waits")) < 2 * (audit.GRACE + LIVE * 1000)
