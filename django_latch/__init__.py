"""Job locks for Django and Celery on Redis."""

from __future__ import annotations

from django_latch.exceptions import (
    LatchBusy,
    LatchCorrupt,
    LatchDeadlock,
    LatchError,
    LatchLost,
    LatchNameError,
    LatchNotAcquired,
    LatchNotHeld,
    LatchQueueFull,
    LatchTimeout,
    LatchUnavailable,
    LatchValueError,
)
from django_latch.locks import Latch, Lease, current_lease, latch

__all__ = [
    "Latch",
    "LatchBusy",
    "LatchCorrupt",
    "LatchDeadlock",
    "LatchError",
    "LatchLost",
    "LatchNameError",
    "LatchNotAcquired",
    "LatchNotHeld",
    "LatchQueueFull",
    "LatchTimeout",
    "LatchUnavailable",
    "LatchValueError",
    "Lease",
    "current_lease",
    "latch",
]
