"""The calls on a snapshot, and what their scripts answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from django_latch.core.calls import Call
from django_latch.core.replies import BadReply, number, text
from django_latch.core.timing import milliseconds

#: Seconds for which nobody is elected after a compute has failed: the first time, and at most.
PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 30.0

#: Longest text that is remembered of an error, in characters.
ERROR: Final = 500

#: Roles of a caller who is to compute.
ELECTED: Final = ("elected", "takeover")


@dataclass(frozen=True, slots=True)
class Seen:
    """A snapshot as read, and what the caller is to do about it. Times in ms."""

    state: Literal["hit", "stale", "miss"]
    fence: int  # of the value; 0 without one
    age: int
    left: int  # until it is not fresh any more; negative for a stale one
    took: int  # its compute
    role: str  # see snapshot_read.lua
    holder: int  # fence of the caller's own election, or of whoever computes
    holder_left: int  # until that lease ends
    since: str  # where to watch from
    failures: int  # computes that failed one after the other
    retry_in: int  # until somebody is elected again
    error: str
    value: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a publication, a failure or an invalidation."""

    word: str  # published, freed, invalidated or refused
    reason: str  # why it was refused
    number: int


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked for. Times in seconds."""

    name: str  # as the store has it
    fresh_for: float
    keep_for: float
    wait: float
    ttl: float
    max_hold: float
    permits: int
    slice: float
    shape: str = ""

    @cached_property
    def field(self) -> str:
        """Where the wanted shape stands."""
        return "v:" + self.shape


def read(
    wanted: Wanted, owner: str, token: str, *, unreadable: int = 0, until: float | None = None
) -> Call[Seen]:
    """Read, and perhaps be elected: see snapshot_read.lua."""
    args = (milliseconds(wanted.ttl), wanted.field, 1)
    return Call("snapshot_read", wanted.name, args, (owner, token, unreadable), seen, until)


def look(name: str, shape: str = "") -> Call[Seen]:
    """Read without being elected; writes nothing."""
    return Call("snapshot_read", name, (1, "v:" + shape, 0), ("", "", 0), seen)


def facts(name: str) -> Call[Seen]:
    """Read what is known of a value, and not the value: what is told as such are the facts."""
    return Call("snapshot_read", name, (1, "m", 0), ("", "", 0), seen)


def publish(
    wanted: Wanted,
    shapes: Mapping[str, bytes],
    token: str,
    fence: int,
    took: float,
    fresh_for: float | None = None,
    deadline: float = 0,
) -> Call[Done]:
    """Publish the shapes of a value, if `fence` is the newest.

    Parameters:
        token: of the election; "" for a caller with a permit only.
        took: seconds of the compute.
        fresh_for: in place of what is wanted.
        deadline: when it ends to be fresh at the latest, in seconds since the epoch; 0: no such.
    """
    fresh = wanted.fresh_for if fresh_for is None else min(fresh_for, wanted.fresh_for)
    args = (milliseconds(fresh), milliseconds(wanted.keep_for))
    own: list[str | int | bytes] = [milliseconds(took), milliseconds(deadline), token, fence]
    for shape, value in shapes.items():
        own += ["v:" + shape, value]
    return Call("snapshot_publish", wanted.name, args, tuple(own), done)


def fail(name: str, error: str, token: str, fence: int = 0) -> Call[Done]:
    """End an election without a value; `error` is remembered, "" only gives it up."""
    args = (milliseconds(PAUSE), milliseconds(LONGEST_PAUSE))
    return Call("snapshot_fail", name, args, (error[:ERROR], token, fence), done)


def invalidate(name: str, max_hold: float) -> Call[Done]:
    """Forget the value, and refuse what is being computed now."""
    return Call("snapshot_invalidate", name, (milliseconds(max_hold),), (), done)


def names(offset: int, most: int) -> Call[list[str]]:
    """The names of snapshots of which anything is kept, the first to end first."""
    return Call("look", "", ("snapshots", offset, most), (), _names)


def _names(reply: object) -> list[str]:
    if not isinstance(reply, list):
        raise BadReply(f"a list expected, not {type(reply).__name__}")
    return [text(name) for name in reply]


def seen(reply: object) -> Seen:
    """The answer of snapshot_read.lua."""
    if not isinstance(reply, list) or len(reply) not in (1, 2):
        raise BadReply(f"a list expected, not {type(reply).__name__}")
    at = text(reply[0]).split("\n", 11)
    if len(at) != 12 or at[0] not in ("hit", "stale", "miss"):
        raise BadReply("snapshot_read.lua: unknown form")
    value = _bytes(reply[1]) if len(reply) == 2 else None
    if (value is None) != (at[0] == "miss"):
        raise BadReply("snapshot_read.lua: state and value differ")
    fence, age, left, took = map(number, at[1:5])
    return Seen(
        at[0],  # type: ignore[arg-type]
        fence,
        age,
        left,
        took,
        at[5],
        number(at[6]),
        number(at[7]),
        at[8],
        number(at[9]),
        number(at[10]),
        at[11],
        value,
    )


#: What is seen where nothing is kept.
NOTHING: Final = Seen("miss", 0, 0, 0, 0, "", 0, 0, "", 0, 0, "", None)


def glanced(clock: object, found: object) -> Seen | None:
    """The answers of TIME and of HMGET of the facts and the value: a fresh value, or NOTHING.

    What is not fresh, or not in order, is for snapshot_read.lua to judge: None.
    """
    if not isinstance(clock, (list, tuple)) or len(clock) != 2:
        raise BadReply("the server's time expected")
    if not isinstance(found, list) or len(found) != 2:
        raise BadReply(f"a list of two expected, not {type(found).__name__}")
    facts, value = found
    if facts is None or value is None:
        return NOTHING
    try:
        fence, made, fresh, _, took = map(int, text(facts).split("|"))
    except ValueError:
        return None
    now = number(clock[0]) * 1000 + number(clock[1]) // 1000
    if not made <= now < fresh:
        return None
    return Seen("hit", fence, now - made, fresh - now, took, "", 0, 0, "", 0, 0, "", _bytes(value))


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise BadReply(f"bytes expected, not {type(value).__name__}")
    return value


def done(reply: object) -> Done:
    """The answer of the scripts that end a compute."""
    at = text(reply).split("\n")
    if len(at) != 3 or at[0] not in ("published", "freed", "invalidated", "refused"):
        raise BadReply("an answer of a snapshot expected")
    return Done(at[0], at[1], number(at[2]))
