"""What the model of a lock remembers: the counterpart of the keys in the store."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Literal

#: Most messages a wake list keeps; nobody reads one that long.
WAKES: Final = 1000

State = Literal["held", "offered", "queued", "cooling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the settings say to every call."""

    grace: int = 60_000  # ms an ended token is remembered
    live: int = 3_000  # ms a waiter is believed to live after its last poll
    events: int = 1  # 0 none, 1 problems, 2 all
    events_max: int = 10_000


@dataclass(slots=True, kw_only=True)
class Record:
    """A hold, an offer, a place in the queue, or a permit that is cooling. Times in ms."""

    token: str = field(repr=False)
    state: State
    fence: int = 0
    exp: int  # of a place: until when its owner is believed to live
    lease: int
    claim: int = 0
    limit: int
    ticket: int = 0  # microseconds
    since: int
    hold: int = 0  # the permit is not free before; 0: at once
    wake: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Tomb:
    """What is remembered of a token that has ended."""

    reason: str
    fence: int
    ticket: int
    held: int  # ms
    forget: int  # ms
    lasts: bool  # a copy of its request may still be under way


@dataclass(slots=True)
class NextRun:
    """The one run that is to follow: see slot.lua."""

    job: str = ""  # whose message carries it
    payload: str = ""  # the arguments of the latest call
    until: int = 0  # ms; its carrier must show itself before
    ran: str = ""  # the job that carried the last one
    given: str = ""  # and with what
    ends: int = -1  # ms; when all this is forgotten


@dataclass(slots=True)
class Lock:
    """One lock.

    The four collections of the live tokens say the same thing, each from its own side, and agree
    unless one of them was lost; so it is in the store, where each is a key or part of one.
    """

    records: dict[str, Record] = field(default_factory=dict)
    holding: list[str] = field(default_factory=list)  # in the order of their grants
    queue: dict[str, int] = field(default_factory=dict)  # token -> ticket
    alive: dict[str, int] = field(default_factory=dict)  # token -> ms
    tombs: dict[str, Tomb] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)  # finished job -> forget at, ms
    next: NextRun = field(default_factory=NextRun)
    until: int = 0  # ms; when the store drops all but jobs and next run, whoever looks

    @property
    def holders(self) -> list[Record]:
        """The records that keep a permit."""
        return [self.records[token] for token in self.holding if token in self.records]

    def line(self) -> list[str]:
        """The waiting tokens, first come first."""
        return sorted(self.queue, key=lambda token: (self.queue[token], token))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; never with a token."""

    kind: str
    name: str
    at: int  # ms
    fence: int
    owner: str
    more: dict[str, Any]

    def as_dict(self) -> dict[str, str]:
        """As the stream of the store has it."""
        facts = {"kind": self.kind, "name": self.name, "at": self.at, "fence": self.fence}
        return {key: str(v) for key, v in {**facts, "owner": self.owner, **self.more}.items()}


@dataclass(slots=True)
class WakeList:
    """Messages for one waiting connection."""

    messages: deque[str] = field(default_factory=lambda: deque(maxlen=WAKES))
    until: int = 0  # ms


@dataclass(frozen=True, slots=True)
class Value:
    """What was published of a snapshot. Times in ms."""

    fence: int
    made: int
    fresh: int  # until then
    kept: int  # until then
    took: int
    shapes: dict[str, bytes] = field(repr=False)


@dataclass(slots=True)
class Snapshot:
    """What is kept of a snapshot. Times in ms."""

    value: Value | None = None
    floor: int = 0  # the fence of the last value or invalidation
    failures: int = 0
    not_before: int = 0  # nobody is elected until then
    error: str = ""
    listed: int = 0  # until then
    until: int = 0  # when all this is forgotten, but for the news
    news: int = 0  # how often something was said about it


@dataclass(slots=True)
class Bucket:
    """Locks that share a counter, an index and a stream of events."""

    stamp: int = 0  # the last fence or ticket, microseconds
    index: dict[str, int] = field(default_factory=dict)  # name -> expiry, ms
    events: deque[Event] = field(default_factory=deque)
    wakes: dict[str, WakeList] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)  # name -> until of its next run, ms
    accounts: dict[str, dict[str, int]] = field(default_factory=dict)  # -> member -> until, ms
    waits: dict[str, tuple[int, str]] = field(default_factory=dict)  # agent -> until, lock
    locks: dict[str, Lock] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
