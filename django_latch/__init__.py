"""Job locks for Django and Celery on Redis."""

from __future__ import annotations

from django_latch.exceptions import (
    LatchBusy,
    LatchComputeFailed,
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
from django_latch.snapshots import (
    FreshUntil,
    Pending,
    Snapshot,
    asnapshot,
    snapshot,
    snapshot_view,
)

__all__ = [
    "FreshUntil",
    "Latch",
    "LatchBusy",
    "LatchComputeFailed",
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
    "Pending",
    "Snapshot",
    "asnapshot",
    "current_lease",
    "latch",
    "snapshot",
    "snapshot_view",
]
