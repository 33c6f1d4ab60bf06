"""Everything django_latch raises on purpose.

    LatchError
    ├── LatchNotAcquired      no lease was granted
    │   ├── LatchBusy         one try, and somebody else holds it
    │   ├── LatchTimeout      waited in vain
    │   ├── LatchQueueFull    too many wait already
    │   └── LatchDeadlock     waiting would never end
    ├── LatchComputeFailed    a snapshot could not be computed
    ├── LatchNotHeld          this token does not hold the lock (any more)
    ├── LatchLost             ownership can no longer be proved
    ├── LatchUnavailable      the store gave no usable answer
    ├── LatchCorrupt          a key of ours holds something else
    ├── LatchNameError        a bad name or template (also a ValueError)
    └── LatchValueError       a bad argument (also a ValueError)

Each class docstring is its default message. ``args`` is ``(message, details)`` with plain JSON
values, so an error survives pickle and the JSON of a Celery result backend unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class LatchError(Exception):
    """The lock operation failed.

    Parameters:
        message: what happened; the class docstring's first line when omitted.
        details: plain JSON values; each becomes an attribute.
        **more: more details.

    Attributes (``None`` where unknown): ``name`` of the lock; ``waited`` seconds; ``position`` in
    the queue; ``holder``, the public facts of whoever holds it; ``ttl_remaining`` seconds of the
    holder's lease; ``reason``, a word of the vocabulary of reasons.
    """

    name: str | None = None
    waited: float | None = None
    position: int | None = None
    holder: dict[str, Any] | None = None
    ttl_remaining: float | None = None
    reason: str | None = None

    def __init__(
        self, message: str | None = None, details: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        if message is None:
            message = (type(self).__doc__ or "").strip().splitlines()[0]
        facts = {**(details or {}), **more}
        super().__init__(message, facts)
        for key, value in facts.items():
            setattr(self, key, value)

    def __str__(self) -> str:
        return str(self.args[0])


class LatchNotAcquired(LatchError):
    """The lock was not acquired."""

    @property
    def unanswered(self) -> bool:
        """Whether the time was spent without a word from the store: perhaps nobody holds it."""
        return self.reason == "unreachable"


class LatchBusy(LatchNotAcquired):
    """The lock is held by another."""


class LatchTimeout(LatchNotAcquired):
    """The lock was not acquired in the time given."""


class LatchQueueFull(LatchNotAcquired):
    """Too many callers wait for this lock already."""


class LatchDeadlock(LatchNotAcquired):
    """Waiting for this lock would close a circle of holders that wait for each other."""


class LatchComputeFailed(LatchError):
    """The snapshot could not be computed."""


class LatchNotHeld(LatchError):
    """This token does not hold the lock."""


class LatchLost(LatchError):
    """Ownership of the lock can no longer be proved."""


class LatchUnavailable(LatchError):
    """The lock store gave no usable answer."""


class LatchCorrupt(LatchError):
    """A key of django_latch holds something else."""


class LatchNameError(LatchError, ValueError):
    """This is not a valid lock name."""


class LatchValueError(LatchError, ValueError):
    """This is not a valid argument of a lock."""
