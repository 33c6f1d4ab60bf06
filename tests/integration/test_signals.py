"""Signals and log lines: what is told, to whom, and never a token."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
import redis
from django.dispatch import Signal

from django_latch import (
    Latch,
    LatchBusy,
    LatchNotHeld,
    LatchTimeout,
    LatchUnavailable,
    inventory,
    latch,
    signals,
)
from tests.integration.aliases import locks_at
from tests.integration.until import until

SIGNALS = {name: value for name, value in vars(signals).items() if isinstance(value, Signal)}

Heard = list[tuple[str, dict[str, object]]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Every signal that was sent, in order."""
    told: Heard = []

    def receiver(signal: str) -> Callable[..., None]:
        return lambda **payload: told.append((signal, payload))

    receivers = {name: receiver(name) for name in SIGNALS}
    for name, each in receivers.items():
        SIGNALS[name].connect(each)
    yield told
    for name, each in receivers.items():
        SIGNALS[name].disconnect(each)


def names(heard: Heard) -> list[str]:
    return [name for name, _ in heard]


def test_a_lease_that_is_released(heard: Heard) -> None:
    with latch("job", timeout=0, ttl=20) as lease:
        pass
    assert names(heard) == ["lock_acquired", "lock_released"]
    (_, begun), (_, ended) = heard
    same = {"name": "job", "fence": lease.fence, "fingerprint": lease.fingerprint}
    assert {key: begun[key] for key in same} == same
    assert {key: ended[key] for key in same} == same
    assert begun["ttl"] == 20
    assert 0 <= begun["waited"] < 2  # type: ignore[operator]
    assert 0 <= ended["held_for"] < 2  # type: ignore[operator]
    assert {payload["sender"] for _, payload in heard} == {Latch}


def test_a_call_that_is_refused(heard: Heard) -> None:
    with latch("job", timeout=0, owner="me"):
        assert latch("job", timeout=0).try_acquire() is None
        assert latch("job", timeout=0.05).try_acquire() is None
    contended = [payload for name, payload in heard if name == "lock_contended"]
    assert [payload["reason"] for payload in contended] == ["busy", "timeout"]
    assert contended[1]["waited"] >= 0.05  # type: ignore[operator]
    assert contended[0]["holder"]["label"] == "me"  # type: ignore[index]


def test_a_lease_that_is_lost(raw: redis.Redis, heard: Heard) -> None:
    lease = latch("job", timeout=0, ttl=0.6).acquire()
    raw.flushdb()
    until(lambda: lease.lost)
    with pytest.raises(LatchNotHeld):
        lease.release()
    assert names(heard) == ["lock_acquired", "lock_lost"]
    assert heard[1][1]["reason"] == "missing"


def test_a_lease_that_somebody_frees(heard: Heard) -> None:
    lease = latch("job", timeout=0, ttl=30).acquire()
    inventory.clear(
        "job", fence=lease.fence, fingerprint=lease.fingerprint, reason="stuck", actor="ops"
    )
    with pytest.raises(LatchNotHeld) as refused:
        lease.renew()
    assert refused.value.reason == "revoked"
    assert names(heard) == ["lock_acquired", "lock_force_released", "lock_lost"]
    assert (heard[1][1]["actor"], heard[1][1]["reason"]) == ("ops", "stuck")


def test_a_receiver_that_fails_harms_no_lock(caplog: pytest.LogCaptureFixture) -> None:
    def fail(**payload: object) -> None:
        raise ZeroDivisionError("a bug of the project")

    signals.lock_acquired.connect(fail)
    signals.lock_released.connect(fail)
    try:
        with latch("job", timeout=0) as lease:
            lease.ensure_held()
        with latch("job", timeout=0):
            pass
    finally:
        signals.lock_acquired.disconnect(fail)
        signals.lock_released.disconnect(fail)
    assert caplog.text.count("a bug of the project") >= 4


def test_no_token_is_told_or_logged(
    raw: redis.Redis, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = []
    with latch("job", timeout=0, ttl=0.6) as lease:
        tokens.append(lease.token)
        with pytest.raises(LatchBusy) as busy:
            latch("job", timeout=0).acquire()
    lost = latch("job", timeout=0, ttl=0.6).acquire()
    tokens.append(lost.token)
    raw.flushdb()
    until(lambda: lost.lost)
    with locks_at("redis://127.0.0.1:1/0"), pytest.raises(LatchUnavailable) as outage:
        latch("job", timeout=0).acquire(token="t" * 40)
    tokens.append("t" * 40)
    shown = caplog.text + repr(heard) + repr(busy.value) + repr(outage.value) + repr(lost)
    for token in tokens:
        assert token not in shown
    assert lost.fingerprint in caplog.text


@pytest.mark.parametrize(("reason", "told"), [("busy", 1), ("timeout", 1), ("unreachable", 0)])
def test_no_answer_at_all_is_no_contention(reason: str, told: int) -> None:
    heard: list[dict[str, object]] = []

    def receiver(**payload: object) -> None:
        heard.append(payload)

    signals.lock_contended.connect(receiver)
    signals.contended("job", LatchTimeout("late", name="job", reason=reason))
    assert [payload["reason"] for payload in heard] == [reason] * told
