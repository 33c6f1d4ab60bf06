"""Durations and deadlines."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_latch.core.timing import DRIFT, deadline, milliseconds, now, seconds
from django_latch.exceptions import LatchValueError


def test_the_clock_never_steps_and_counts_suspend() -> None:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    before = time.clock_gettime(clock) if clock is not None else time.monotonic()
    assert before <= now() <= before + 1


@given(sent=st.floats(0, 1e7), left=st.integers(0, 10**10))
def test_a_deadline_is_never_later_than_what_was_left(sent: float, left: int) -> None:
    end = deadline(sent, left)
    assert end <= sent + left / 1000 - 0.0009
    assert end >= sent + left / 1000 * (1 - DRIFT) - 0.0011


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1.0), (0.5, 0.5), (timedelta(minutes=1), 60.0), (timedelta(milliseconds=1), 0.001)],
)
def test_seconds(value: object, expected: float) -> None:
    checked = seconds(value, "ttl", least=0, most=100)
    assert type(checked) is float
    assert checked == expected


@pytest.mark.parametrize(
    "value",
    [-1, 101, float("nan"), float("inf"), 10**400, -(10**400), "1", None, True, timedelta(days=1)],
    ids=lambda value: f"{value!r:.20}",
)
def test_bad_seconds_are_named(value: object) -> None:
    with pytest.raises(LatchValueError, match=r"^ttl must be") as refused:
        seconds(value, "ttl", least=0, most=100)
    assert len(str(refused.value)) < 200


@given(st.floats(0, 1e9))
def test_a_positive_time_is_never_zero_on_the_wire(value: float) -> None:
    whole = milliseconds(value)
    assert (whole == 0) == (value == 0)
    assert abs(whole - value * 1000) <= 1
