"""An acquire that is interrupted at each of its steps, and once more while it leaves.

The flow of an acquire is driven by hand, so that the interruption comes exactly between two
steps, or after a step was carried out and before its answer is read.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchError, Lease, latch
from django_latch.conf import conf
from django_latch.core import verbs
from django_latch.core.calls import Call, Park
from django_latch.core.flow import Flow
from django_latch.core.timing import now
from django_latch.core.tokens import new_token
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.until import until
from tests.waiting.crowd import eventually

#: Where an interruption comes: before the step, or after it and before its answer.
MOMENTS = ("before", "after")

#: More steps than any of these flows has.
MANY = 30

#: Step -> when, and by what.
Interruptions = dict[int, tuple[str, type[BaseException]]]

#: Step -> what happens before it.
Happenings = dict[int, Callable[[], object]]

#: An acquire that has not begun, and what happens meanwhile.
Scene = tuple[Flow[Any], Happenings]


class Closed(BaseException):
    """Stands for the end of a generator that nobody runs to its end."""


def drive(flow: Flow[Any], interruptions: Interruptions, at: Happenings) -> Any:
    """Run a flow; at some steps interrupt it or do something else before."""
    step = next(flow)
    for number in itertools.count():
        assert number < MANY
        if number in at:
            at[number]()
        moment, error = interruptions.get(number, ("", Closed))
        outcome: object = None
        if moment != "before":
            try:
                outcome = run(step)
            except LatchError as trouble:
                outcome, moment, error = trouble, "raise", type(trouble)
        try:
            if not moment:
                step = flow.send(outcome)
            elif error is Closed:
                flow.close()
                raise Closed
            else:
                step = flow.throw(outcome if isinstance(outcome, error) else error())
        except StopIteration as end:
            return end.value


def run(step: Call[Any] | Park[Any]) -> object:
    """Carry a step out; a wait is short."""
    if isinstance(step, Park):
        return store().park(replace(step, until=min(step.until, now() + 0.02)))
    return store().call(step)


def acquiring(made: Latch) -> Flow[Lease]:
    return made._acquiring(made._ask(conf.load()), store(), store())


def free() -> Scene:
    return acquiring(latch("job", timeout=5)), {}


def tried() -> Scene:
    return acquiring(latch("job", timeout=0)), {}


def handed_over() -> Scene:
    """It waits, and is handed the lock over in its second slice."""
    holder = latch("job", timeout=0).acquire()
    return acquiring(latch("job", timeout=5)), {2: holder.release}


def stale() -> Scene:
    """Beside its own it settles another lock, whose lease has passed."""
    gone = latch("gone", ttl=0.02, timeout=0, heartbeat=False).acquire()
    until(lambda: gone.lost and not store().call(verbs.read("gone")).holders)
    return acquiring(latch("job", timeout=5)), {}


def searching() -> Scene:
    """It looks for deadlocks between its slices."""
    holder = latch("job", timeout=0).acquire()
    return acquiring(latch("job", timeout=5)), {6: holder.release}


def told_late() -> Scene:
    """It was granted the lock by an earlier request, so it renews before it enters."""
    made = latch("job", timeout=5)
    ask, token = made._ask(conf.load()), new_token()
    store().call(verbs.request(ask, verbs.Caller(token)))
    time.sleep(0.002)
    return made._acquiring(ask, store(), store(), token), {}


def together() -> Scene:
    return Latch.many("a", "job", "c", timeout=5)._acquiring(store(), store()), {}


def one_by_one() -> Scene:
    """Of three locks the second is held, and released after a while."""
    holder = latch("job", timeout=0).acquire()
    made = Latch.many("x", "job", "a", timeout=5)
    return made._acquiring(store(), store()), {4: holder.release}


SCENES = [free, tried, handed_over, stale, told_late, searching, together, one_by_one]


@pytest.fixture(autouse=True)
def _search(request: pytest.FixtureRequest) -> Iterator[None]:
    with latch_settings(DEADLOCKS="searching" in request.node.name):
        yield


def steps(scene: Callable[[], Scene]) -> int:
    """How many steps a scene has when nothing interrupts it."""
    flow, at = scene()
    count = 0

    def counted() -> Flow[Any]:
        nonlocal count
        step = next(flow)
        while True:
            count += 1
            step = flow.send((yield step))

    with pytest.raises(RuntimeError) as ended:  # what a generator makes of a StopIteration
        drive(counted(), {}, at)
    assert isinstance(ended.value.__cause__, StopIteration)
    ended.value.__cause__.value.release()
    return count


def assert_all_free(raw: redis.Redis) -> None:
    """Soon, for some abandons are sent in the background."""
    for name in audit.locks(raw) - {"gone"}:
        eventually(partial(audit.assert_free, raw, name))
    raw.flushdb()


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, Closed])
def test_interrupted_at_any_step_it_leaves_nothing(
    raw: redis.Redis, scene: Callable[[], Scene], error: type[BaseException]
) -> None:
    most = steps(scene)
    assert most >= 1
    for number, moment in itertools.product(range(most), MOMENTS):
        flow, at = scene()
        with pytest.raises(error):
            drive(flow, {number: (moment, error)}, at)
        for do in at.values():
            do()
        assert_all_free(raw)


@pytest.mark.parametrize("scene", SCENES)
def test_interrupted_twice_it_leaves_nothing(raw: redis.Redis, scene: Callable[[], Scene]) -> None:
    most = steps(scene)
    second = [(1, "before"), (1, "after"), (2, "before")]
    for first, moment, (later, other) in itertools.product(range(most), MOMENTS, second):
        flow, at = scene()
        twice = {first: (moment, asyncio.CancelledError), first + later: (other, KeyboardInterrupt)}
        with pytest.raises((asyncio.CancelledError, KeyboardInterrupt)):
            drive(flow, twice, at)
        for do in at.values():
            do()
        assert_all_free(raw)


def one() -> Flow[None]:
    return latch("job", timeout=0).acquire()._releasing()


def several() -> Flow[None]:
    return Latch.many("x", "job", "a", timeout=0).acquire()._releasing()


@pytest.mark.parametrize("releasing", [one, several])
@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, Closed])
def test_a_release_interrupted_at_any_step_is_completed_in_the_background(
    raw: redis.Redis, releasing: Callable[[], Flow[None]], error: type[BaseException]
) -> None:
    for number, moment in itertools.product(range(3 if releasing is several else 1), MOMENTS):
        with pytest.raises(error):
            drive(releasing(), {number: (moment, error)}, {})
        assert_all_free(raw)
