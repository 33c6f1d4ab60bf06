"""Waiting for a condition, never for a length of time."""

from __future__ import annotations

import time
from collections.abc import Callable

from django_latch import Lease


def until(condition: Callable[[], object], within: float = 5.0) -> None:
    """Return as soon as `condition` holds; fail after `within` seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"not within {within} s"
        time.sleep(0.002)


def renewed_for(lease: Lease, seconds: float) -> None:
    """Return as soon as renewals have put off the end of `lease` by more than so long."""
    before = lease._deadline
    until(lambda: lease._deadline > before + seconds)
