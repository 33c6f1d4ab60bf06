"""Waiting for one of several permits, also where callers do not agree how many there are."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchBusy, latch
from tests.integration import audit
from tests.integration.programs import Program, program
from tests.integration.until import until
from tests.waiting.crowd import PATIENCE, Crowd, waiters


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


class Room:
    """Notes who is inside, by the limit each asked for."""

    def __init__(self) -> None:
        self._inside: list[int] = []
        self._mutex = threading.Lock()
        self.most = 0
        self.mixed = False

    @contextmanager
    def visit(self, limit: int) -> Iterator[None]:
        with self._mutex:
            self._inside.append(limit)
            assert len(self._inside) <= min(self._inside), self._inside
            self.most = max(self.most, len(self._inside))
            self.mixed |= len(set(self._inside)) > 1
        yield
        with self._mutex:
            self._inside.remove(limit)


def test_no_more_than_the_limit_under_load_and_no_permit_lies_idle(
    raw: redis.Redis, crowd: Crowd
) -> None:
    room = Room()

    def work() -> list[int]:
        fences = []
        for _ in range(15):
            with lock(limit=3) as lease, room.visit(3):
                time.sleep(0.002)
                fences.append(lease.fence)
        return fences

    for _ in range(12):
        crowd.start(work)
    fences = [fence for fences in crowd.results() for fence in fences]
    assert len(set(fences)) == 12 * 15
    assert room.most == 3
    audit.assert_free(raw, "job")


def test_tasks_share_the_permits(raw: redis.Redis) -> None:
    room = Room()

    async def work() -> None:
        async with lock(limit=5):
            with room.visit(5):
                await asyncio.sleep(0.002)

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(100)))

    asyncio.run(main())
    assert room.most == 5
    audit.assert_free(raw, "job")


def test_several_permits_freed_at_once_serve_several_waiters(
    raw: redis.Redis, crowd: Crowd
) -> None:
    exclusive = lock().acquire()
    together = threading.Barrier(3)

    def work() -> None:
        with lock(limit=3):
            together.wait(PATIENCE)  # all three are inside

    for _ in range(3):
        crowd.queue_up(work)
    exclusive.release()
    crowd.results()
    audit.assert_free(raw, "job")


def test_a_low_limit_at_the_head_holds_back_the_higher_ones_behind_it(
    raw: redis.Redis, crowd: Crowd
) -> None:
    """The order is strict: nobody is let past."""
    order: list[str] = []
    holder = lock(limit=3).acquire()

    def work(label: str, limit: int) -> None:
        with lock(limit=limit):
            order.append(label)

    crowd.queue_up(work, "exclusive", 1)
    crowd.queue_up(work, "shared", 3)
    with pytest.raises(LatchBusy):
        lock(limit=3, timeout=0).acquire()
    assert order == []
    holder.release()
    crowd.results()
    assert order == ["exclusive", "shared"]
    audit.assert_free(raw, "job")


def test_both_versions_of_a_limit_run_at_the_same_time(raw: redis.Redis, crowd: Crowd) -> None:
    """Never more owners than the smaller limit allows while one of its holders lives."""
    room = Room()
    dice = random.Random(random.randrange(10**6))

    def work(limit: int) -> int:
        for _ in range(20):
            with lock(limit=limit), room.visit(limit):
                time.sleep(dice.uniform(0, 0.003))
        return 20

    for number in range(12):
        crowd.start(work, [1, 3, 2, 3][number % 4])
    assert crowd.results() == [20] * 12
    assert room.most >= 2
    audit.assert_free(raw, "job")


VERSION = """
limit = int(hear())
say("ready")
hear()
end = time.monotonic() + 2.5
while time.monotonic() < end:
    with latch("job", ttl=0.8, timeout=20, limit=limit) as lease:
        time.sleep(0.002)
say("done")
"""


@pytest.mark.chaos
def test_a_rolling_change_of_the_limit_from_one_to_three(raw: redis.Redis) -> None:
    """The old version's processes end one after the other; those of the new one take over."""
    seen: set[tuple[int, ...]] = set()

    def limits() -> tuple[int, ...]:
        held = [r for r in audit.records(raw, "job").values() if r.state in ("held", "offered")]
        return tuple(sorted(int(r.raw.split("|")[5]) for r in held))

    with (
        program(VERSION) as one,
        program(VERSION) as two,
        program(VERSION) as three,
        program(VERSION) as four,
    ):
        everybody: list[tuple[Program, int]] = [(one, 1), (two, 1), (three, 3), (four, 3)]
        for each, limit in everybody:
            each.say(limit)
            each.expect("ready")
        for each, _ in everybody[:3]:
            each.say("go")
        until(lambda: seen.add(limits()) or {(1,), (3,)} <= seen)
        one.kill()
        two.kill()
        four.say("go")
        # An old holder that was killed counts until its lease has passed.
        until(lambda: seen.add(limits()) or (3, 3) in seen, PATIENCE)
        three.expect("done")
        four.expect("done")
    for held in seen:
        assert not held or len(held) <= min(held), held
    audit.assert_sound(raw)


def test_each_permit_has_a_lease_of_its_own(raw: redis.Redis, crowd: Crowd) -> None:
    """One holder that dies frees one permit, at the end of its own lease."""
    with program(HOLD) as dies, lock(limit=2) as stays:
        dies.expect("holds")
        assert len(audit.listed(raw, "job")) == 2
        future = crowd.queue_up(lock(limit=2).acquire)
        (exp,) = [
            r.exp
            for token, r in audit.records(raw, "job").items()
            if r.state == "held" and token != stays.token
        ]
        dies.kill()
        lease = future.result(PATIENCE)
        assert exp < audit.now(raw) < exp + 1500 + 2000
        assert waiters(raw) == 0
        stays.ensure_held()
        lease.release()
    audit.assert_free(raw, "job")


HOLD = """
lease = latch("job", ttl=1.5, limit=2).acquire()
say("holds")
hear()
"""
