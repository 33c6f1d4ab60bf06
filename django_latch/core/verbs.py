"""The calls on a lock, argument for argument as the scripts' headers have them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from django_latch.core import replies
from django_latch.core.calls import Call
from django_latch.core.timing import milliseconds

T = TypeVar("T")

#: Calls, whose parsed replies are sent back.
Steps = Generator[Call[Any], Any, T]


@dataclass(kw_only=True)  # not frozen: that takes time at each acquire
class Ask:
    """What is asked for. Times in seconds; `timeout` 0 is one try."""

    name: str
    ttl: float
    owner: str
    timeout: float = 0
    limit: int = 1
    slice: float = 2
    claim: float = 3
    min_hold: float = 0
    max_waiters: int = 100
    max_timeout: float = 3600
    live: float = 3
    grace: float = 60
    agent: str = ""  # who asks, where deadlocks are searched for

    @cached_property
    def args(self) -> tuple[str | int, ...]:
        """The arguments that requests of other asks with these options share."""
        return (
            milliseconds(self.ttl),
            self.limit,
            int(self.timeout > 0),
            milliseconds(self.claim),
            milliseconds(self.min_hold),
            self.max_waiters,
            milliseconds(self.max_timeout),
        )


@dataclass(slots=True)  # not frozen: that takes time at each acquire
class Caller:
    """Who asks: one acquisition's own facts."""

    token: str = field(repr=False)
    job: str = ""  # must not be remembered as finished
    wake: str = ""  # id of the wake list; it must be known before the first queueing
    own: bool = False  # the user's token: it serves one acquisition, and is never exchanged
    keep: bool = False  # after a time-out the place stays, for whoever sends the token again
    returns: bool = False  # interrupted or without an answer, this caller sends the token again


def request(
    ask: Ask, caller: Caller, *, ticket: int = 0, silent: int = 0, until: float | None = None
) -> Call[replies.Request]:
    """Acquire, or poll for, a lock."""
    own = (ask.owner, caller.wake, caller.job, caller.token, ticket, silent)
    return Call("request", ask.name, ask.args, own, replies.request, until)


def many(
    ask: Ask, names: Sequence[str], tokens: Sequence[str], until: float | None = None
) -> Call[tuple[int, list[int]] | str]:
    """Take several locks that are all free, or none. `ask` says all but the names."""
    own = [part for pair in zip(names, tokens, strict=True) for part in pair]
    shared = (milliseconds(ask.ttl), ask.limit, milliseconds(ask.claim), ask.owner)
    return Call("many", names[0], shared, tuple(own), replies.many, until, others=tuple(names[1:]))


def renew(
    name: str,
    token: str,
    fence: int | None,
    ttl: float,
    owner: str = "",
    until: float | None = None,
) -> Call[replies.Renewed | replies.Ended]:
    """Raise a hold's expiry to `ttl` seconds from now, and perhaps write a new owner."""
    args = (milliseconds(ttl), owner)
    return Call("renew", name, args, (token, fence or ""), replies.renew, until)


def shorten(
    name: str, token: str, fence: int | None, seconds: float
) -> Call[replies.Renewed | replies.Ended]:
    """Lower a hold's expiry, on proof of death."""
    return Call("shorten", name, (milliseconds(seconds),), (token, fence or ""), replies.renew)


def adopt(
    name: str,
    old: str,
    token: str,
    ttl: float,
    owner: str,
    remember: float = 0,
    min_hold: float = 0,
) -> Call[replies.Renewed | replies.Ended]:
    """Hand a hold over from the token `old`, remembered for so many seconds, to `token`."""
    args = (milliseconds(ttl), milliseconds(remember))
    return Call("adopt", name, args, (owner, token, old, milliseconds(min_hold)), replies.renew)


def slot(name: str, what: str, job: str, live: float, payload: str = "") -> Call[replies.Slot]:
    """The one next run of a lock: see slot.lua. `live` in seconds."""
    return Call("slot", name, (what, milliseconds(live)), (job, payload), replies.slot)


def pass_on(name: str, job: str, made: int, heir: str, live: float) -> Call[replies.Slot]:
    """The next run's carrier `job`, whose own call was made then, will not run: `heir` may."""
    return slot(name, "pass", job, live, f"{made}\n{heir}")


def end(
    name: str,
    token: str,
    reason: str,
    fence: int | None = None,
    *,
    resent: bool = False,
    known: bool = False,
    job: str = "",
    keep_job_for: float = 0,
    note: str = "",
) -> Call[replies.Closed]:
    """Release, abandon or clear.

    Parameters:
        resent: a request of this token may still be under way, and must get nothing.
        known: the same if the store knows the token; otherwise nothing is written.
    """
    own = (token, "" if fence is None else fence, job, milliseconds(keep_job_for), note)
    return Call("end", name, (reason, 2 if known else int(resent)), own, replies.end)


def queue(name: str, most: int) -> Call[replies.Waiters]:
    """Read who waits, at most so many, without writing."""
    return Call("queue", name, (most,), (), replies.waiters)


def account(name: str, account: str, member: str, most: int, seconds: float) -> Call[int]:
    """Count `member` among an account's leases for so many seconds; `most` 0 takes it out.

    Any lock of the bucket may be `name`. The answer is how many there are, or -1 if there were
    `most` without it: then it was not counted.
    """
    args = (account, most, milliseconds(seconds))
    return Call("account", name, args, (member,), replies.number)


def resent(call: Call[replies.Closed]) -> Call[replies.Closed]:
    """An `end` for its second sending."""
    return replace(call, args=(call.args[0], 1))


def nudge(name: str, fence: int) -> Call[object]:
    """Tell the second waiter if the one that was offered the lock has not read its message."""
    return Call("nudge", name, (), (fence,), lambda reply: reply)


def waits(name: str, agent: str = "", other: str = "") -> Call[str]:
    """Say that `agent` waits for this lock; read which one `other` waits for. Each may be ""."""
    return Call("waits", name, (), (agent, other), replies.text)


def count() -> Call[int]:
    """How many locks are listed."""
    return Call("look", "", ("count", 0, 0), (), replies.one)


def names(first: int, last: int, *, reverse: bool = False) -> Call[list[str]]:
    """The names of locks by expiry, from one place to another, counted from 0."""
    return Call("look", "", ("reversed" if reverse else "names", first, last), (), replies.texts)


def scan(cursor: int, most: int) -> Call[tuple[int, list[str]]]:
    """Names of about so many locks, and where to go on, 0 at the end."""
    return Call("look", "", ("scan", cursor, most), (), replies.scan)


def due(most: int) -> Call[list[str]]:
    """The names of locks whose next run is the first to be overdue."""
    return Call("look", "", ("due", 0, most - 1), (), replies.texts)


def events(most: int) -> Call[list[dict[str, str]]]:
    """What happened last to any lock, the latest first."""
    return Call("look", "", ("events", 0, most), (), replies.events)


def next_run(name: str) -> Call[tuple[str, int] | None]:
    """The job that carries a lock's next run, and until when (ms) it must show itself."""
    return Call("look", name, ("next", 0, 0), (), replies.next_run)


def known(name: str) -> Call[int]:
    """Whether anything is remembered of a lock: 1 or 0."""
    return Call("look", name, ("known", 0, 0), (), replies.one)


def trim(name: str) -> Call[object]:
    """Settle a lock whose entry in the index has passed."""
    return Call("trim", name, (), (), lambda reply: reply)


def read(name: str) -> Call[replies.Listing]:
    """Read a lock without writing."""
    return Call("list", name, (), (), replies.listing)
