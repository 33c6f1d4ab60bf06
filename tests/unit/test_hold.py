"""What a holder knows without asking, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_latch import hold as module
from django_latch.core.calls import StoreError
from django_latch.core.flow import Grant
from django_latch.core.replies import Ended, Renewed
from django_latch.exceptions import LatchLost, LatchNotHeld
from django_latch.hold import Hold

Make = Callable[..., Hold]

TOKEN, TTL = "t" * 32, 30
AWAY = StoreError("no answer", reason="timeout", unanswered=True, again=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [1000.0]
    monkeypatch.setattr(module, "now", lambda: time[0])
    return time


@pytest.fixture
def held(clock: list[float]) -> Iterator[Make]:
    """Makes leases that began at 1000 and have ended when the test has."""
    every: list[Hold] = []

    def make(*, renews: bool = False, max_hold: float | None = None) -> Hold:
        store: Any = None  # never asked
        every.append(Hold(store, "job", ttl=TTL, renews=False, max_hold=max_hold))
        every[-1].begin(Grant(TOKEN, 7, 1000 + TTL, 0))
        every[-1]._renews = renews
        return every[-1]

    yield make
    for lease in every:
        lease._stop("released")


def renewed(left: float) -> Renewed:
    return Renewed(7, int(left * 1000), 0, 0)


def test_a_renewal_counts_from_before_it_was_sent(clock: list[float], held: Make) -> None:
    lease = held()
    clock[0] = 1011
    lease.heard(renewed(TTL), sent=1010)
    assert lease.remaining() == pytest.approx(TTL * 0.99 - 1)


def test_a_renewal_that_is_read_after_the_deadline_revives_nothing(
    clock: list[float], held: Make
) -> None:
    lease = held()
    clock[0] = 1000 + TTL  # nobody has looked since
    lease.heard(renewed(TTL), sent=1000 + TTL - 1)
    assert lease.lost
    assert lease.remaining() == 0
    with pytest.raises(LatchLost):
        lease.ensure_held()


def test_lost_is_final(clock: list[float], held: Make) -> None:
    lease = held()
    lease.heard(Ended("revoked"), sent=1000)
    lease.heard(renewed(TTL), sent=1001)
    lease.heard(Ended("expired"), sent=1001)
    assert lease.lost == "revoked"
    with pytest.raises(LatchNotHeld) as refused:
        lease._require_held()
    assert refused.value.reason == "revoked"


def test_a_renewal_never_shortens(clock: list[float], held: Make) -> None:
    lease = held()
    lease.heard(renewed(5), sent=1000)
    assert lease.remaining() == TTL


def test_an_error_leaves_the_old_deadline(clock: list[float], held: Make) -> None:
    lease = held(renews=True)
    lease.heard(AWAY, sent=1000)
    assert lease.lost is None
    assert lease.remaining() == TTL
    assert lease.due <= 1001  # tried again soon


def test_an_answer_that_meets_the_running_release_is_no_loss(
    clock: list[float], held: Make
) -> None:
    lease = held()
    lease._stop("released")
    lease.heard(Ended("released"), sent=1000)
    assert lease.lost is None


@pytest.mark.parametrize(
    ("renews", "outcome", "max_hold", "reason"),
    [
        (False, None, None, "expired"),
        (True, AWAY, None, "unreachable"),
        (True, None, None, "paused"),  # renewals were due, and this process did not run
        (True, None, 20, "expired"),
    ],
)
def test_why_a_lease_ran_out(
    clock: list[float], held: Make, renews: bool, outcome: Any, max_hold: float | None, reason: str
) -> None:
    lease = held(renews=renews, max_hold=max_hold)
    if outcome is not None:
        lease.heard(outcome, sent=1000)
    clock[0] = 1000 + TTL - 0.001
    assert lease.lost is None
    clock[0] = 1000 + TTL
    assert lease.lost == reason


def test_max_hold_is_the_last_renewal(clock: list[float], held: Make) -> None:
    lease = held(renews=True, max_hold=40)
    clock[0] = 1020
    assert lease.renewal().args[0] == 20_000
    clock[0] = 1039.9995
    assert lease.renewal().args[0] >= 1


def test_a_lease_of_another_process_is_nobodys(held: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = held()
    monkeypatch.setattr(module.heartbeat, "generation", module.heartbeat.generation + 1)
    assert lease.lost == "never_held"
    assert not lease.held_here
    assert lease.remaining() == 0


def test_the_token_is_not_shown(clock: list[float], held: Make) -> None:
    lease = held()
    assert TOKEN not in repr(lease)
    assert TOKEN not in repr(lease.renewal())
    assert TOKEN not in repr(lease.farewell())
