"""The invariants find the flaws that drafts of the protocol had, put back on purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from django_latch.core.model import Model
from django_latch.core.model_verbs import Verbs
from tests.contract import flaws
from tests.contract.callers import Machine
from tests.contract.engines import Engine, ModelEngine
from tests.contract.invariants import Broken


def machine(kind: type[Model]) -> type[Machine]:
    """The machine on one model alone."""

    class Alone(Machine):
        def engines(self) -> Sequence[Engine]:
            return (ModelEngine(kind),)

    return Alone


def begin(m: Machine, slot: int, **asked: Any) -> None:
    """A caller that waits, and holds for a minute once it can."""
    usual = {"lease": 60.0, "limit": 1, "wait": 10, "hold": 0, "most": 100, "job": ""}
    m.begin(slot=slot, name="a", lost=False, **{**usual, **asked})


def poll(m: Machine, slot: int, silent: str = "") -> None:
    m.poll(slot=slot, parked=False, silent=silent, lost=False)


def a_short_renewal(m: Machine) -> None:
    begin(m, 0)
    m.renew(slot=0, lease=1.0, lost=False)


def a_late_copy_of_the_request(m: Machine) -> None:
    begin(m, 0, lease=1.0)
    m.renew(slot=0, lease=60.0, lost=False)
    m.late_copy(n=1)


def a_larger_limit(m: Machine) -> None:
    begin(m, 0, limit=1)
    begin(m, 1, limit=2)


def standby_after_the_grant(m: Machine) -> None:
    for slot in range(3):
        begin(m, slot)
    m.leave(slot=0, job="", lost=False)
    poll(m, 1)
    poll(m, 2, silent="held")


def a_loss_and_a_late_request(m: Machine) -> None:
    begin(m, 0)
    m.flush()
    m.late_copy(n=0)
    m.renew(slot=0, lease=60.0, lost=False)


def the_last_millisecond(m: Machine) -> None:
    begin(m, 0, lease=1.0)
    m.tick(seconds=0.9999)
    begin(m, 1)


def a_request_after_the_release(m: Machine) -> None:
    begin(m, 0)
    m.leave(slot=0, job="", lost=False)
    m.late_copy(n=1)


def a_waiter_is_late(m: Machine) -> None:
    begin(m, 0)
    begin(m, 1)
    m.tick(seconds=3.001)
    m.trim(name="a")
    poll(m, 1)


def a_full_queue_after_a_loss(m: Machine) -> None:
    begin(m, 0)
    begin(m, 1, most=1)
    m.flush()
    begin(m, 2)
    begin(m, 3)
    poll(m, 1)


def a_newcomer_who_needs_less(m: Machine) -> None:
    begin(m, 0, limit=3)
    begin(m, 1, limit=1)
    begin(m, 2, limit=3)


def a_late_renewal(m: Machine) -> None:
    begin(m, 0, lease=1.0)
    m.tick(seconds=5.0)
    m.renew(slot=0, lease=60.0, lost=False)


def cleaning_up(m: Machine) -> None:
    begin(m, 0, lease=1.0)
    begin(m, 1)
    m.tick(seconds=1.001)
    m.trim(name="a")


#: Each flaw, and a course of events that brings it to light.
SCENES: dict[type[Verbs], Callable[[Machine], None]] = {
    flaws.ShortensByRenewal: a_short_renewal,
    flaws.ShortensByRequest: a_late_copy_of_the_request,
    flaws.LimitOfTheNewcomerOnly: a_larger_limit,
    flaws.StandbyEndsHolds: standby_after_the_grant,
    flaws.RenewalOfAnyFence: a_loss_and_a_late_request,
    flaws.EndsTooEarly: the_last_millisecond,
    flaws.ForgetsTheEnded: a_request_after_the_release,
    flaws.FreshTickets: a_waiter_is_late,
    flaws.CountsThoseWhoReturn: a_full_queue_after_a_loss,
    flaws.NewcomersPass: a_newcomer_who_needs_less,
    flaws.RevivesTheExpired: a_late_renewal,
    flaws.TrimsWithoutHandingOver: cleaning_up,
}

#: Those that chance finds soon, too.
COMMON = [
    flaws.ShortensByRenewal,
    flaws.LimitOfTheNewcomerOnly,
    flaws.EndsTooEarly,
    flaws.ForgetsTheEnded,
    flaws.NewcomersPass,
    flaws.RevivesTheExpired,
]


@pytest.mark.parametrize("flaw", SCENES, ids=lambda flaw: flaw.__name__)
def test_a_flaw_is_caught_where_it_shows(flaw: type[Verbs]) -> None:
    SCENES[flaw](machine(Model)())
    with pytest.raises(Broken):
        SCENES[flaw](machine(flaws.flawed(flaw))())


@pytest.mark.parametrize("flaw", COMMON, ids=lambda flaw: flaw.__name__)
def test_a_flaw_is_found_by_chance(flaw: type[Verbs]) -> None:
    search = settings(
        max_examples=2000,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
    )
    with pytest.raises(Broken):
        run_state_machine_as_test(machine(flaws.flawed(flaw)), settings=search)
