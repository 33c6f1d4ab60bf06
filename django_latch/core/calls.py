"""What the engine sends to a store, and how it hears that there was no answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One script call on one lock.

    `args` are those that most calls of a lock share, so a store may keep them ready for the wire;
    `own` follow, the token among them. `until`, on the clock of `core.timing.now`, is when the
    caller's time is spent; without it the connection's own time-out decides.
    """

    verb: str
    name: str
    args: tuple[str | int, ...]
    own: tuple[str | int, ...] = field(repr=False)
    parse: Callable[[object], T_co] = field(repr=False)
    until: float | None = None
    others: tuple[str, ...] = ()  # further locks the call speaks of


@dataclass(frozen=True, slots=True)
class Park(Generic[T_co]):
    """A call to be sent when a message arrives on the wake list, or at `until`, a slice's end.

    A message begins with the token it is for. A second word is the fence of an offer whose waiter
    may be dead; it is handed on beside the reply.
    """

    call: Call[T_co]
    token: str = field(repr=False)
    wake: str
    until: float


class StoreError(Exception):
    """The store gave no usable answer.

    Attributes:
        reason: a word for the kind of trouble; `spent` where only the caller's time ran out.
        unanswered: the call may have been carried out all the same.
        again: sending it once more may help.
    """

    def __init__(self, problem: str, *, reason: str, unanswered: bool, again: bool) -> None:
        super().__init__(problem)
        self.reason = reason
        self.unanswered = unanswered
        self.again = again
