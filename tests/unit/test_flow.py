"""What the engine decides, without a server: each step answered by the test."""

from __future__ import annotations

from typing import Any

import pytest

from django_latch.core import flow, replies, timing, verbs
from django_latch.core.calls import Call, Park, StoreError
from django_latch.core.replies import Busy, Closed, Ended, Full, Granted, Held, Queued, Renewed
from django_latch.exceptions import (
    LatchBusy,
    LatchNotAcquired,
    LatchQueueFull,
    LatchTimeout,
    LatchUnavailable,
)

TOKEN = "t" * 32
TTL = 30
TRY = verbs.Ask(name="job", ttl=TTL, owner="{}")
WAIT = verbs.Ask(name="job", ttl=TTL, owner="{}", timeout=10)
HELD = Held(5000, 7, 1_700_000_000_000)
FULL_LEASE = Granted(8, TTL * 1000)

LOST = StoreError("no answer", reason="connection", unanswered=True, again=True)
NOT_SENT = StoreError("refused", reason="connection", unanswered=False, again=False)
FINAL = StoreError("no answer", reason="timeout", unanswered=True, again=False)
SPENT = StoreError("spent", reason="spent", unanswered=True, again=False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the flows, which only the test moves."""
    time = [1000.0]
    for module in (flow, timing):
        monkeypatch.setattr(module, "now", lambda: time[0])
    return time


class Run:
    """Answers a flow's steps in turn, and keeps what was sent."""

    def __init__(self, caller: verbs.Caller | None = None) -> None:
        self.caller = caller or verbs.Caller(TOKEN, wake="ab")
        self.steps: list[Call[Any] | Park[Any]] = []
        self.owed: list[Call[Any]] = []

    def acquire(self, ask: verbs.Ask, *answers: Any) -> Any:
        return self.drive(flow.acquire(ask, self.caller, self.owed.append), *answers)

    def drive(self, running: Any, *answers: Any) -> Any:
        given = iter(answers)
        try:
            step = next(running)
            while True:
                self.steps.append(step)
                answer = next(given)
                if callable(answer):
                    answer = answer()
                if isinstance(answer, BaseException):
                    step = running.throw(answer)
                else:
                    step = running.send((answer, 0) if isinstance(step, Park) else answer)
        except StopIteration as end:
            assert next(given, None) is None, "an answer was not asked for"
            return end.value

    @property
    def sent(self) -> list[str]:
        """The verbs that were sent, with the reason of an end; parked ones say so."""
        return [_name(step) for step in self.steps]

    def tokens(self) -> list[str]:
        found = [step.call if isinstance(step, Park) else step for step in self.steps]
        return [part for call in found for part in call.own if len(str(part)) == 32]


def _name(step: Call[Any] | Park[Any]) -> str:
    if isinstance(step, Park):
        return f"park {step.call.verb}"
    return f"end {step.args[0]} {step.args[1]}" if step.verb == "end" else step.verb


def test_a_grant_is_counted_from_before_it_was_sent(clock: list[float]) -> None:
    run = Run()

    def slow() -> Granted:
        clock[0] += 4
        return FULL_LEASE

    grant = run.acquire(TRY, slow)
    assert (grant.token, grant.fence, grant.waited) == (TOKEN, 8, 4)
    assert grant.deadline == pytest.approx(1000 + TTL * 0.99)
    assert run.sent == ["request"]


def test_a_lost_answer_is_asked_for_again_with_the_same_token(clock: list[float]) -> None:
    run = Run()
    grant = run.acquire(TRY, LOST, FULL_LEASE)
    assert grant.token == TOKEN
    assert run.sent == ["request", "request"]
    assert run.tokens() == [TOKEN, TOKEN]
    assert run.owed == []


def test_a_grant_to_the_first_sending_is_renewed(clock: list[float]) -> None:
    run = Run()
    grant = run.acquire(TRY, LOST, Granted(8, TTL * 1000 - 1), Renewed(8, TTL * 1000, 0, 0))
    assert run.sent == ["request", "request", "renew"]
    assert grant.deadline == pytest.approx(1000 + TTL * 0.99)


def test_an_old_answer_is_renewed_before_it_is_told(clock: list[float]) -> None:
    run = Run()

    def slow() -> Granted:
        clock[0] += TTL / 2
        return FULL_LEASE

    grant = run.acquire(TRY, slow, Renewed(8, TTL * 1000, 0, 0))
    assert run.sent == ["request", "renew"]
    assert grant.deadline == pytest.approx(1000 + TTL / 2 + TTL * 0.99)


def test_a_grant_that_is_over_when_it_arrives_is_never_told(clock: list[float]) -> None:
    run = Run()

    def late() -> Granted:
        clock[0] += TTL + 1
        return FULL_LEASE

    grant = run.acquire(TRY, late, Ended("expired", 8), FULL_LEASE)
    assert run.sent == ["request", "renew", "request"]
    assert grant.token != TOKEN
    assert grant.deadline == pytest.approx(1000 + TTL + 1 + TTL * 0.99)


def test_leases_shorter_than_the_way_are_given_up(clock: list[float]) -> None:
    run = Run()

    def late(answer: Any) -> Any:
        def wait() -> Any:
            clock[0] += TTL + 1
            return answer

        return wait

    turn = [late(FULL_LEASE), late(Renewed(8, TTL * 1000, 0, 0)), Closed("abandoned", 0)]
    with pytest.raises(LatchUnavailable) as outage:
        run.acquire(TRY, *(turn * 4))
    assert outage.value.reason == "timeout"
    assert run.sent == ["request", "renew", "end abandoned 1"] * 4
    assert len(set(run.tokens())) == 4


def test_no_answer_to_both_sendings_is_an_outage_and_a_debt(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(LatchUnavailable) as outage:
        run.acquire(TRY, LOST, LOST)
    assert outage.value.reason == "connection"
    assert [_name(call) for call in run.owed] == ["end abandoned 1"]
    assert run.owed[0].own[0] == TOKEN


def test_what_was_never_sent_owes_nothing(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(LatchUnavailable):
        run.acquire(TRY, NOT_SENT)
    assert run.sent == ["request"]
    assert run.owed == []


@pytest.mark.parametrize(
    ("answer", "error"), [(Busy(HELD), LatchBusy), (Full(HELD), LatchQueueFull)]
)
def test_a_clean_refusal_costs_nothing_more(
    clock: list[float], answer: Any, error: type[Exception]
) -> None:
    run = Run()
    with pytest.raises(error):
        run.acquire(TRY, answer)
    assert run.sent == ["request"]
    assert run.owed == []


@pytest.mark.parametrize(
    ("answer", "error"), [(Busy(HELD), LatchBusy), (Full(HELD), LatchQueueFull)]
)
def test_a_refusal_after_a_lost_answer_is_abandoned(
    clock: list[float], answer: Any, error: type[Exception]
) -> None:
    run = Run()
    with pytest.raises(error):
        run.acquire(TRY, LOST, answer, Closed("abandoned", 0))
    assert run.sent == ["request", "request", "end abandoned 1"]


def test_a_refused_abandon_is_owed(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(LatchBusy):
        run.acquire(TRY, LOST, Busy(HELD), LOST)
    assert [_name(call) for call in run.owed] == ["end abandoned 1"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit()])
def test_an_interruption_is_abandoned(clock: list[float], interruption: BaseException) -> None:
    run = Run()
    with pytest.raises(type(interruption)):
        run.acquire(TRY, interruption, Closed("abandoned", 0))
    assert run.sent == ["request", "end abandoned 1"]


def test_an_interrupted_wait_is_abandoned(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(KeyboardInterrupt):
        run.acquire(WAIT, Queued(5, 0, HELD), KeyboardInterrupt(), Closed("abandoned", 0))
    assert run.sent == ["request", "park request", "end abandoned 1"]


def test_a_flow_that_is_closed_owes_its_abandon(clock: list[float]) -> None:
    run = Run()
    running = flow.acquire(WAIT, run.caller, run.owed.append)
    next(running)
    running.send(Queued(5, 0, HELD))
    running.close()
    assert [_name(call) for call in run.owed] == ["end abandoned 1"]


def test_a_wait_is_made_of_slices_and_keeps_its_ticket(clock: list[float]) -> None:
    run = Run()

    def slice_over() -> Queued:
        clock[0] += 2
        return Queued(5, 3, HELD)

    grant = run.acquire(WAIT, Queued(5, 4, HELD), slice_over, slice_over, FULL_LEASE)
    assert grant.waited == 4
    assert run.sent == ["request", *["park request"] * 3]
    parks = [step for step in run.steps if isinstance(step, Park)]
    assert [park.until for park in parks] == [1002, 1004, 1006]
    assert {park.call.own[4] for park in parks} == {5}  # the ticket
    assert {park.wake for park in parks} == {"ab"}


def test_the_first_looks_when_the_holders_lease_passes(clock: list[float]) -> None:
    run = Run()
    run.acquire(WAIT, Queued(5, 0, Held(700, 7, 0)), FULL_LEASE)
    park = run.steps[1]
    assert isinstance(park, Park)
    assert 1000.7 <= park.until < 1000.8


def test_the_wait_ends_with_the_time_given(clock: list[float]) -> None:
    run = Run()

    def last() -> Queued:
        clock[0] = 1010
        return Queued(5, 2, HELD)

    with pytest.raises(LatchTimeout) as timeout:
        run.acquire(WAIT, Queued(5, 2, HELD), last, Closed("abandoned", 0))
    assert run.sent == ["request", "park request", "end abandoned 1"]
    assert (timeout.value.waited, timeout.value.position) == (10, 3)


def test_time_that_is_spent_is_no_outage(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(LatchTimeout):
        run.acquire(WAIT, SPENT)
    assert run.sent == ["request"]
    assert [_name(call) for call in run.owed] == ["end abandoned 1"]


def test_a_token_that_ended_untold_is_exchanged_in_its_place(clock: list[float]) -> None:
    run = Run()
    grant = run.acquire(WAIT, Queued(5, 0, HELD), Ended("missing"), Queued(5, 0, HELD), FULL_LEASE)
    assert grant.token != TOKEN
    assert run.sent == ["request", "park request", "request", "park request"]
    last = run.steps[2]
    assert isinstance(last, Call)
    assert last.own[4] == 5  # the old ticket


@pytest.mark.parametrize("reason", ["revoked", "finished"])
def test_a_final_end_is_told(clock: list[float], reason: str) -> None:
    run = Run()
    with pytest.raises(LatchNotAcquired) as refused:
        run.acquire(TRY, Ended(reason))
    assert refused.value.reason == reason


@pytest.mark.parametrize("reason", ["released", "expired", "abandoned", "adopted"])
def test_a_token_of_the_callers_own_is_never_exchanged(clock: list[float], reason: str) -> None:
    run = Run(verbs.Caller(TOKEN, own=True))
    with pytest.raises(LatchNotAcquired) as refused:
        run.acquire(TRY, Ended(reason))
    assert refused.value.reason == reason
    assert run.tokens() == [TOKEN]


CALL = verbs.end("job", TOKEN, "released", 7)


def test_a_release_says_that_it_is_sent_again(clock: list[float]) -> None:
    run = Run()
    closed = run.drive(flow.end(CALL, run.owed.append), LOST, Closed("released", 5, 7))
    assert closed.held_for == 5
    assert run.sent == ["end released 0", "end released 1"]
    assert run.owed == []


@pytest.mark.parametrize("answers", [(LOST, LOST), (FINAL,), (LOST, FINAL)])
def test_a_release_without_an_answer_is_owed(clock: list[float], answers: tuple[Any, ...]) -> None:
    run = Run()
    with pytest.raises(LatchUnavailable):
        run.drive(flow.end(CALL, run.owed.append), *answers)
    assert [_name(call) for call in run.owed] == ["end released 1"]


def test_an_interrupted_release_is_owed(clock: list[float]) -> None:
    run = Run()
    with pytest.raises(KeyboardInterrupt):
        run.drive(flow.end(CALL, run.owed.append), KeyboardInterrupt())
    assert [_name(call) for call in run.owed] == ["end released 1"]


def test_a_renewal_is_counted_from_the_sending_that_was_answered(clock: list[float]) -> None:
    def lose() -> StoreError:
        clock[0] += 3
        return LOST

    run = Run()
    call = verbs.renew("job", TOKEN, 7, TTL)
    reply, sent = run.drive(flow.twice(call), lose, Renewed(7, 1, 0, 0))
    assert isinstance(reply, replies.Renewed)
    assert sent == 1003
    with pytest.raises(LatchUnavailable):
        run.drive(flow.twice(call), LOST, LOST)
    with pytest.raises(LatchUnavailable):
        run.drive(flow.twice(call), NOT_SENT)
