"""How a lock is asked for and given back: the decisions, without input and output.

Each flow is a generator. It yields what is to be sent, a `Call` or a `Park`, and is sent the
parsed reply or thrown the `StoreError`. Sync and async drivers run the same flows, so what an
answer means is decided in one place.

The rules are those of the protocol page: the token is made by the client and every script may
run twice, so what had no answer is simply sent again; whoever leaves without a lease says so
while a request of theirs may still be under way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from django_latch.core import deadlock, errors, replies, verbs
from django_latch.core.calls import Call, Glance, Park, StoreError, Watch, Work
from django_latch.core.timing import deadline, milliseconds, now
from django_latch.core.tokens import new_token
from django_latch.core.verbs import Ask, Caller
from django_latch.exceptions import LatchError, LatchTimeout

T = TypeVar("T")

#: Endings after which a caller does not start again: cleared by an operator, or nothing to do.
FINAL: Final = ("revoked", "finished")

#: Seconds that a caller who gives up stays for the answer to that; then it is sent again later.
LEAVING: Final = 1.0

#: How often a caller starts again with a new token before it gives up.
RESTARTS: Final = 4

Flow = Generator[Call[Any] | Park[Any] | Glance | Watch | Work, Any, T]


@dataclass(slots=True)  # not frozen: that takes time at each acquire
class Grant:
    """A lease as it was told."""

    token: str
    fence: int
    deadline: float  # on the clock of core.timing.now
    waited: float  # seconds
    stale: tuple[str, ...] = ()  # other locks whose holders' leases have passed
    payload: str | None = None  # of the lock's next run, where the caller carries that


@dataclass(slots=True)
class _Standing:
    """How an asking caller stands with the store."""

    caller: Caller
    begun: float
    until: float | None  # when the caller's time is spent; None: one try
    ticket: int = 0
    queued: bool = False
    unanswered: bool = False  # a request of this token may still be under way
    silent: int = 0  # fence of an offer whose waiter may be dead

    def waited(self) -> float:
        return now() - self.begun

    def start_again(self) -> None:
        """The token ended before anybody was told: a new one, in the old place."""
        self.caller = replace(self.caller, token=new_token())
        self.queued = self.unanswered = False


def acquire(ask: Ask, caller: Caller, owe: Callable[[Call[Any]], None]) -> Flow[Grant]:
    """Ask for the lock, wait in the queue as long as `ask` allows, and leave no trace on failure.

    Parameters:
        ask: what is asked for.
        caller: who asks; the token is made before the first send.
        owe: takes a call that must still be sent, when sending it now failed.

    Raises:
        LatchBusy, LatchTimeout, LatchQueueFull, LatchNotAcquired: see core.errors.
        LatchUnavailable: no answer, also not to the second sending.
    """
    begun = now()
    standing = _Standing(caller, begun, begun + ask.timeout if ask.timeout else None)
    try:
        for _ in range(RESTARTS):
            reply, sent = yield from _until_answered(ask, standing)
            if isinstance(reply, replies.Granted):
                grant = _fresh(ask, standing, reply, sent)
                if grant is None:
                    grant = yield from _told(ask, standing, reply)
                if grant is not None:
                    return grant
            else:
                _check(ask, standing, reply)
            if standing.caller.own:
                break
            standing.start_again()
        raise StoreError(
            "every grant was too late", reason="timeout", unanswered=False, again=False
        )
    except BaseException as error:
        # Interrupted anywhere, the last request may be under way.
        leaves = standing.queued or standing.unanswered or not isinstance(error, Exception)
        if leaves and not (caller.keep and isinstance(error, LatchTimeout)):
            yield from _leave(ask, standing.caller, error, owe)
        if isinstance(error, StoreError):
            raise errors.unavailable(ask.name, error, standing.waited()) from error
        raise


def _check(ask: Ask, standing: _Standing, reply: replies.Request) -> None:
    """Raise the refusal that a reply is, unless the caller may start again."""
    match reply:
        case replies.Busy(held):
            raise errors.busy(ask, held)
        case replies.Full(held):
            raise errors.full(ask, held)
        case replies.Ended(reason) if standing.caller.own or reason in FINAL:
            raise errors.ended(ask, reply, standing.waited())


def _until_answered(ask: Ask, standing: _Standing) -> Flow[tuple[replies.Request, float]]:
    """Poll until the answer is not `queued`; with it, the clock before it was asked for.

    Each sending has an answer of its own, so an answer counts from the sending it answers.
    """
    place: replies.Queued | None = None
    search = deadlock.Search(ask.name, ask.agent, ask.live) if ask.agent else None
    while True:
        call = verbs.request(
            ask,
            standing.caller,
            ticket=standing.ticket,
            silent=standing.silent,
            until=standing.until,
        )
        step: Call[Any] | Park[Any] = call
        if place is not None and not standing.silent:
            step = _park(ask, standing, place, call)
        standing.silent, sent = 0, now()
        try:
            reply = yield step
            if place is not None and isinstance(step, Park):
                reply, standing.silent = reply
        except StoreError as error:
            reply, sent = yield from _once_more(ask, standing, place, call, error)
        if not isinstance(reply, replies.Queued):
            return reply, sent
        place, standing.queued, standing.ticket = reply, True, reply.ticket
        if standing.until is None or now() >= standing.until:
            raise errors.timeout(ask, reply, standing.waited())
        circle = (yield from search.look()) if search else None
        if circle:
            raise errors.deadlock(ask, reply, circle, standing.waited())


def _park(
    ask: Ask, standing: _Standing, place: replies.Queued, call: Call[replies.Request]
) -> Park[replies.Request]:
    """The request of a waiter, to be sent when its turn comes or the slice ends."""
    end = now() + ask.slice
    if standing.until is not None:
        end = min(end, standing.until)
    if place.ahead == 0 and place.held.left >= 0:
        # The first takes over when the holder's lease passes, if it comes to that.
        end = min(end, now() + place.held.left / 1000 + 0.002)
    return Park(call, standing.caller.token, standing.caller.wake, end)


def _once_more(
    ask: Ask,
    standing: _Standing,
    place: replies.Queued | None,
    call: Call[replies.Request],
    error: StoreError,
) -> Flow[tuple[replies.Request, float]]:
    """A request had no answer: it is sent once more, unless that cannot help."""
    try:
        standing.unanswered |= error.unanswered
        if not error.again:
            raise error
        sent = now()
        try:
            return (yield call), sent
        except StoreError as second:
            standing.unanswered |= second.unanswered
            raise
    except StoreError as last:
        if last.reason != "spent" or place is None:
            raise
        raise errors.timeout(ask, place, standing.waited()) from last


def _fresh(ask: Ask, standing: _Standing, granted: replies.Granted, sent: float) -> Grant | None:
    """The grant as it is told to the caller, if that is still worth most of the lease."""
    end, left = deadline(sent, granted.left), granted.left
    if left < milliseconds(ask.ttl) or end - now() < ask.ttl * 2 / 3:
        return None
    caller = standing.caller
    return Grant(
        caller.token, granted.fence, end, standing.waited(), granted.stale, granted.payload
    )


def _told(ask: Ask, standing: _Standing, granted: replies.Granted) -> Flow[Grant | None]:
    """The grant, renewed before the caller is told; None where its time has passed on the way.

    It was granted to an earlier request of this token; or the answer is old, for its request
    stood behind a BLPOP or this process was away.
    """
    token, fence = standing.caller.token, granted.fence
    standing.unanswered, sent = True, now()
    renewed = yield verbs.renew(ask.name, token, fence, ask.ttl)
    if not isinstance(renewed, replies.Renewed):
        return None
    end = deadline(sent, renewed.left)
    if end > now():
        return Grant(token, fence, end, standing.waited(), granted.stale, granted.payload)
    yield verbs.end(ask.name, token, "abandoned", resent=True)
    return None


def _leave(
    ask: Ask, caller: Caller, error: BaseException, owe: Callable[[Call[Any]], None]
) -> Flow[None]:
    """Abandon: what is still under way must grant nothing to somebody who has gone.

    Of a caller who may be back already with the same token, only a place in the queue (fence 0)
    ends, and its ticket is remembered: what was granted meanwhile may have been told.
    """
    call = verbs.end(ask.name, caller.token, "abandoned", resent=True)
    if caller.returns and not isinstance(error, LatchError):
        call = verbs.end(ask.name, caller.token, "lapsed", 0)
    if isinstance(error, (GeneratorExit, StoreError)):
        owe(call)  # nothing can be sent now, or nothing is answered
        return
    try:
        yield replace(call, until=now() + LEAVING)
    except BaseException as trouble:  # interrupted once more, it may not have gone out
        owe(call)
        if not isinstance(trouble, StoreError):
            raise


def twice(call: Call[T]) -> Flow[tuple[T, float]]:
    """Send a call, once more if need be. Returns the answer and the clock before its own send."""
    begun = sent = now()
    try:
        return (yield call), sent
    except StoreError as error:
        if not error.again:
            raise errors.unavailable(call.name, error, now() - begun) from error
    sent = now()
    try:
        return (yield call), sent
    except StoreError as error:
        raise errors.unavailable(call.name, error, now() - begun) from error


def end(call: Call[replies.Closed], owe: Callable[[Call[Any]], None]) -> Flow[replies.Closed]:
    """Release, at most twice. Without an answer the debt is kept: the token is not forgotten."""
    try:
        try:
            closed: replies.Closed = yield call
        except StoreError as error:
            if not error.again:
                raise
            closed = yield verbs.resent(call)
        return closed
    except BaseException as error:
        owe(verbs.resent(call))
        if isinstance(error, StoreError):
            raise errors.unavailable(call.name, error) from error
        raise
