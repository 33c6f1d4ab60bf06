"""What the scripts answer, as values.

A reply is one text with a field on each line, or (list.lua) a flat list; texts arrive as bytes
or str, depending on the client. Whatever does not have the form its script promises is a
`BadReply`: an outage, never an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from django_latch.core.owner import Owner


class BadReply(Exception):
    """The store sent something its script never returns."""


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else's hold, as told to a caller that was refused."""

    left: int  # ms until the earliest holder's record expires; -1 where nobody holds
    fence: int = 0
    since: int = 0  # ms of the server's clock
    record: str = ""

    @property
    def owner(self) -> Owner:
        """Who holds it; read only when asked for, since most polls do not ask."""
        return Owner.from_json(self.record)


@dataclass(slots=True)  # not frozen: that takes time at each acquire
class Granted:
    """The caller holds the lock."""

    fence: int
    left: int  # ms
    stale: tuple[str, ...] = ()  # other locks of the bucket whose leases have passed
    payload: str | None = None  # of the lock's next run, where the caller carries that


@dataclass(frozen=True, slots=True)
class Queued:
    """The caller waits."""

    ticket: int
    ahead: int  # waiters before this one
    held: Held


@dataclass(frozen=True, slots=True)
class Busy:
    """It is held, and the caller was not to wait."""

    held: Held


@dataclass(frozen=True, slots=True)
class Full:
    """Too many wait."""

    held: Held


@dataclass(frozen=True, slots=True)
class Ended:
    """The token's time is over: why."""

    reason: str
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Renewed:
    """The hold goes on."""

    fence: int
    left: int  # ms
    now: int  # ms of the server's clock
    waiters: int


@dataclass(slots=True)  # not frozen: that takes time at each acquire
class Closed:
    """The answer to a release or abandon: what the token had become."""

    reason: str
    held_for: int  # ms
    fence: int = 0
    offered: int = 0  # fence of the offer made to the next waiter, if others wait behind it


@dataclass(frozen=True, slots=True)
class Slot:
    """Who carries a lock's next run."""

    word: str  # carrier, merged or none
    job: str = ""
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """One live record of a lock, as read."""

    token: str = field(repr=False)
    state: str  # held, offered or cooling
    fence: int
    exp: int  # ms of the server's clock
    lease: int  # ms
    limit: int
    since: int  # ms
    owner: Owner


@dataclass(frozen=True, slots=True)
class Waiter:
    """One place in a queue."""

    ticket: int  # microseconds of the server's clock when the waiting began
    owner: Owner


@dataclass(frozen=True, slots=True)
class Waiters:
    """A queue, as read at `now` (ms of the server's clock), the next one first."""

    now: int
    waiters: tuple[Waiter, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A lock, as read at `now` (ms of the server's clock)."""

    now: int
    waiters: int
    holders: tuple[Holder, ...]


def text(value: object) -> str:
    """A text of a reply."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    raise BadReply(f"text expected, not {type(value).__name__}")


def number(value: object) -> int:
    """An integer of a reply."""
    if isinstance(value, bool) or not isinstance(value, (int, str, bytes)):
        raise BadReply(f"integer expected, not {type(value).__name__}")
    try:
        return int(value)
    except ValueError:
        raise BadReply("integer expected") from None


def _fields(reply: object, count: int) -> list[str]:
    """The fields of an answer in one text."""
    at = text(reply).split("\n")
    if len(at) < count:
        raise BadReply(f"at least {count} fields expected, got {len(at)}")
    return at


def _held(at: Sequence[str]) -> Held:
    left, fence, since, owner = at
    return Held(number(left), number(fence), number(since), owner)


Request = Granted | Queued | Busy | Full | Ended


def request(reply: object) -> Request:
    """The answer of request.lua."""
    at = _fields(reply, 3)
    match at[0]:
        case "granted":
            return Granted(number(at[1]), number(at[2]), tuple(at[3:]))
        case "carrying":
            at = _fields(reply, 4)
            return Granted(number(at[1]), number(at[2]), payload="\n".join(at[3:]))
        case "ended":
            return Ended(at[1], number(at[2]))
        case "queued":
            at = _fields(reply, 7)
            return Queued(number(at[1]), number(at[2]), _held(at[3:7]))
        case "busy" | "full" as word:
            held = _held(_fields(reply, 5)[1:5])
            return Busy(held) if word == "busy" else Full(held)
    raise BadReply("request.lua: unknown status")


def slot(reply: object) -> Slot:
    """The answer of slot.lua."""
    at = _fields(reply, 3)
    return Slot(at[0], at[1], "\n".join(at[2:]))


def many(reply: object) -> tuple[int, list[int]] | str:
    """The answer of many.lua: ms left and the fences, or the name of one that is not free."""
    at = _fields(reply, 2)
    match at[0]:
        case "granted":
            return number(at[1]), [number(fence) for fence in at[2:]]
        case "busy":
            return at[1]
    raise BadReply("many.lua: unknown status")


def renew(reply: object) -> Renewed | Ended:
    """The answer of renew.lua, shorten.lua and adopt.lua."""
    at = _fields(reply, 3)
    match at[0]:
        case "ok":
            at = _fields(reply, 5)
            return Renewed(number(at[1]), number(at[2]), number(at[3]), number(at[4]))
        case "ended":
            return Ended(at[1], number(at[2]))
    raise BadReply("renew.lua: unknown status")


def end(reply: object) -> Closed:
    """The answer of end.lua."""
    at = _fields(reply, 4)
    if at[0] != "ended":
        raise BadReply("end.lua: unknown status")
    return Closed(at[1], number(at[2]), number(at[3]), number(at[4]) if at[4:] else 0)


def listing(reply: object) -> Listing:
    """The answer of list.lua."""
    if not isinstance(reply, list) or len(reply) < 2:
        raise BadReply(f"a list expected, not {type(reply).__name__}")
    at: list[object] = reply
    pairs = zip(at[2::2], at[3::2], strict=False)
    return Listing(number(at[0]), number(at[1]), tuple(_holder(*pair) for pair in pairs))


def waiters(reply: object) -> Waiters:
    """The answer of queue.lua."""
    if not isinstance(reply, list) or len(reply) % 2 == 0:
        raise BadReply(f"a list expected, not {type(reply).__name__}")
    at: list[object] = reply
    pairs = zip(at[1::2], at[2::2], strict=True)
    return Waiters(
        number(at[0]),
        tuple(Waiter(number(ticket), Owner.from_json(text(owner))) for ticket, owner in pairs),
    )


def _list(reply: object, least: int = 0) -> list[object]:
    if not isinstance(reply, list) or len(reply) < least:
        raise BadReply(f"a list of at least {least} expected, not {type(reply).__name__}")
    return reply


def one(reply: object) -> int:
    """The answer of look.lua where it is a number."""
    return number(_list(reply, 1)[0])


def texts(reply: object) -> list[str]:
    """The answer of look.lua where it is a list of names."""
    return [text(name) for name in _list(reply)]


def scan(reply: object) -> tuple[int, list[str]]:
    """The answer of look.lua to a scan."""
    cursor, *names = _list(reply, 1)
    return number(cursor), [text(name) for name in names]


def next_run(reply: object) -> tuple[str, int] | None:
    """The answer of look.lua about a next run."""
    at = _list(reply)
    return (text(at[0]), number(at[1])) if len(at) == 2 else None


def events(reply: object) -> list[dict[str, str]]:
    """The answer of look.lua about events."""
    words, found = iter(_list(reply)), []
    for count in words:
        fields = [text(word) for word in islice(words, number(count))]
        found.append(dict(zip(fields[::2], fields[1::2], strict=False)))
    return found


#: The two forms of a record, as _common.lua reads them.
_RECORD = re.compile(r"[a-z]+(\|\d+){8}\|[0-9a-f]*\|.*|ended\|[a-z_]+(\|\d+){3}", re.DOTALL)


def is_record(record: str) -> bool:
    """Whether a script can read this record."""
    return _RECORD.fullmatch(record) is not None


def _holder(token: object, record: object) -> Holder:
    # state|fence|exp|lease|claim|limit|ticket|since|hold|wake|owner, as _common.lua writes it
    at = text(record).split("|", 10)
    if len(at) != 11:
        raise BadReply("list.lua: not a record")
    return Holder(
        text(token),
        at[0],
        int(at[1]),
        int(at[2]),
        int(at[3]),
        int(at[5]),
        int(at[7]),
        Owner.from_json(at[10]),
    )
