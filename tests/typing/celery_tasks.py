"""Checked by mypy, never run: what decorating does to types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import assert_type

from django_latch.celery import SingleFlight, single_flight


@single_flight(key="sync:{account}", ttl=timedelta(minutes=1), on_conflict={"run": "retry"})
def sync(account: int, full: bool = False) -> str:
    return "done"


@single_flight
def bare(account: int) -> str:
    return "done"


@SingleFlight(key="export:{account}", on_conflict="raise")
def export(account: int) -> bytes:
    return b""


def make_key(account: int) -> str:
    return f"sync:{account}"


def check() -> None:
    assert_type(sync(1, full=True), str)
    assert_type(bare(1), str)
    assert_type(export(1), bytes)
    assert_type(single_flight(key=make_key, skip_value=[1]), SingleFlight)
    function: Callable[[int], str] = bare
    function(1)
    sync("1")  # type: ignore[arg-type]
    SingleFlight(ttl="60")  # type: ignore[arg-type]
    SingleFlight(at="start")  # type: ignore[arg-type]
    single_flight(ttl="60")  # type: ignore[call-overload]
