"""The process's clock, and the holder's deadline on it."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from math import isfinite
from typing import Final

from django_latch.exceptions import LatchValueError

#: Seconds on a clock that never steps and, where the system has one, counts suspend: a laptop
#: or virtual machine that slept past its lease must not wake up believing it still holds it.
now = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)

#: Share of a lease given up for clocks that run at different speeds.
DRIFT: Final = 0.01

#: Longest time that may be asked for, in seconds (ten years): keeps every sum inside integers.
FOREVER: Final = 10 * 365 * 86400

#: The shortest lease in seconds; shorter ones end before a reply can arrive.
SHORTEST: Final = 0.01


def deadline(sent: float, left_ms: int) -> float:
    """Until when a holder may believe a reply that said `left_ms`.

    Counted from `sent`, the clock before the first send of the call that was answered; the reply
    may have been under way for any part of the time since.
    """
    left = left_ms / 1000
    return sent + left - max(left * DRIFT, 0.001)


def seconds(value: object, what: str, *, least: float, most: float) -> float:
    """Check a duration and return it in seconds.

    Parameters:
        value: a finite int or float of seconds, or a timedelta.
        what: the argument's name, for the error.
        least, most: the closed range allowed, in seconds.

    Raises:
        LatchValueError: names the value, the range and the remedy.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LatchValueError(
            f"{what} must be seconds (int or float) or a timedelta, not {value!r:.80}"
        )
    # Compared before float(): a huge int has no float.
    if not (isinstance(value, int) or isfinite(value)) or not least <= value <= most:
        raise LatchValueError(
            f"{what} must be between {least:g} and {most:.12g} seconds, not {value!r:.80}"
        )
    return float(value)


def milliseconds(value: float) -> int:
    """Whole milliseconds for the wire, rounded to the nearest, never below 1 for a positive one."""
    return max(round(value * 1000), 1) if value > 0 else 0
