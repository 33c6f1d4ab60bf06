"""What the engine sends to a store, and how it hears that there was no answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(slots=True)  # not frozen: that takes time at each acquire
class Call(Generic[T_co]):
    """One script call on one lock.

    `args` are those that most calls of a lock share, so a store may keep them ready for the wire;
    `own` follow, the token among them. `until`, on the clock of `core.timing.now`, is when the
    caller's time is spent; without it the connection's own time-out decides.
    """

    verb: str
    name: str
    args: tuple[str | int, ...]
    own: tuple[str | int | bytes, ...] = field(repr=False)
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


@dataclass(frozen=True, slots=True)
class Glance:
    """Read a snapshot's value by plain commands, in one round trip: answered only if it is fresh.

    Attributes:
        name: of the snapshot.
        field: of the value.
        until: as for a `Call`.
    """

    name: str
    field: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Wait until something is said about a snapshot, then glance at it; or until `until`.

    Attributes:
        glance: what is read then. It can elect nobody, so nobody is harmed if it comes too late.
        since: what was last known of its stream, as the script that reads it answers.
        until: a slice's end.
    """

    glance: Glance
    since: str
    until: float


@dataclass(frozen=True, slots=True)
class Work:
    """Something of the caller's own, to be run where the caller is.

    Attributes:
        run: called; in an event loop, what it returns is awaited if it can be.
        blocks: in an event loop it must have a thread of its own.
    """

    run: Callable[[], Any] = field(repr=False)
    blocks: bool = False


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
