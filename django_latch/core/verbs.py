"""The calls on a lock, argument for argument as the scripts' headers have them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from django_latch.core import replies
from django_latch.core.calls import Call
from django_latch.core.timing import milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
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
    job: str = ""
    wake: str = ""  # id of the caller's wake list; it must be known before the first queueing


def request(
    ask: Ask,
    token: str,
    *,
    ticket: int = 0,
    silent: int = 0,
    until: float | None = None,
) -> Call[replies.Request]:
    """Acquire, or poll for, a lock."""
    return Call(
        "request",
        ask.name,
        (
            token,
            milliseconds(ask.ttl),
            ask.limit,
            int(ask.timeout > 0),
            milliseconds(ask.claim),
            milliseconds(ask.min_hold),
            ask.wake,
            ticket,
            silent,
            ask.max_waiters,
            milliseconds(ask.max_timeout),
            ask.job,
            ask.owner,
        ),
        replies.request,
        until,
    )


def renew(
    name: str, token: str, fence: int | None, ttl: float, owner: str = ""
) -> Call[replies.Renewed | replies.Ended]:
    """Raise a hold's expiry to `ttl` seconds from now, and perhaps write a new owner."""
    return Call("renew", name, (token, fence or "", milliseconds(ttl), owner), replies.renew)


def shorten(
    name: str, token: str, fence: int | None, seconds: float
) -> Call[replies.Renewed | replies.Ended]:
    """Lower a hold's expiry, on proof of death."""
    return Call("shorten", name, (token, fence or "", milliseconds(seconds)), replies.renew)


def adopt(
    name: str, old: str, token: str, ttl: float, owner: str
) -> Call[replies.Renewed | replies.Ended]:
    """Hand a hold over from the token `old` to `token`."""
    return Call("adopt", name, (old, token, milliseconds(ttl), owner), replies.renew)


#: Where `end` has its mark that a request of the token may still be under way.
_RESENT: Final = 3


def end(
    name: str,
    token: str,
    reason: str,
    fence: int | None = None,
    *,
    resent: bool = False,
    job: str = "",
    keep_job_for: float = 0,
    note: str = "",
) -> Call[replies.Closed]:
    """Release, abandon or clear."""
    args = (token, reason, fence or "", int(resent), job, milliseconds(keep_job_for), note)
    return Call("end", name, args, replies.end)


def resent(call: Call[replies.Closed]) -> Call[replies.Closed]:
    """An `end` for its second sending."""
    args = (*call.args[:_RESENT], 1, *call.args[_RESENT + 1 :])
    return replace(call, args=args)


def trim(name: str) -> Call[object]:
    """Settle a lock whose entry in the index has passed."""
    return Call("trim", name, (), lambda reply: reply)


def read(name: str) -> Call[replies.Listing]:
    """Read a lock without writing."""
    return Call("list", name, (), replies.listing)
