"""Waiting for a condition, never for a length of time."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], within: float = 5.0) -> None:
    """Return as soon as `condition` holds; fail after `within` seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"not within {within} s"
        time.sleep(0.002)
