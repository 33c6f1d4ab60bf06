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
from typing import Any, TypeVar

from django_latch.core import errors, replies, verbs
from django_latch.core.calls import Call, Park, StoreError
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import new_token
from django_latch.core.verbs import Ask, Caller

T = TypeVar("T")
Flow = Generator[Call[Any] | Park[Any], Any, T]


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as it was told."""

    token: str
    fence: int
    deadline: float  # on the clock of core.timing.now
    waited: float  # seconds
    stale: tuple[str, ...] = ()  # other locks whose holders' leases have passed


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
    until = begun + ask.timeout if ask.timeout else None
    ticket, queued, unanswered, again, restarts = 0, False, False, True, 3
    step: Call[Any] | Park[Any] = verbs.request(ask, caller, until=until)
    try:
        while True:
            sent = now()
            try:
                reply = yield step
            except StoreError as error:
                unanswered |= error.unanswered
                if not (error.again and again):
                    raise
                again, step = False, verbs.request(ask, caller, ticket=ticket, until=until)
                continue
            again = True
            if isinstance(reply, replies.Granted):
                end, fence = deadline(sent, reply.left), reply.fence
                if end - now() < ask.ttl * 2 / 3:
                    # The answer is old, or the lease was granted while this process was away.
                    unanswered, sent = True, now()
                    renewed = yield verbs.renew(ask.name, caller.token, fence, ask.ttl)
                    if isinstance(renewed, replies.Renewed):
                        end = deadline(sent, renewed.left)
                if end > now():
                    return Grant(caller.token, fence, end, now() - begun, reply.stale)
                reply = yield verbs.end(ask.name, caller.token, "abandoned", resent=True)
            match reply:
                case replies.Ended(reason="revoked" | "finished") as ended:
                    raise errors.ended(ask, ended, now() - begun)
                case replies.Ended() | replies.Closed() if restarts:
                    # It ended before anybody was told: a new token, in the old place.
                    restarts -= 1
                    caller, queued, unanswered = replace(caller, token=new_token()), False, False
                    step = verbs.request(ask, caller, ticket=ticket, until=until)
                case replies.Queued() as place:
                    queued, ticket = True, place.ticket
                    if until is None or now() >= until:
                        raise errors.timeout(ask, place, now() - begun)
                    step = _slice(ask, caller, place, until)
                case replies.Busy(held) if until is None:
                    raise errors.busy(ask, held)
                case replies.Full(held):
                    raise errors.full(ask, held)
                case _:
                    # Leases shorter than the way to the store, or answers out of turn.
                    raise StoreError(
                        f"no usable grant ({type(reply).__name__})",
                        reason="timeout",
                        unanswered=True,
                        again=False,
                    )
    except BaseException as error:
        lost_answer = not isinstance(error, Exception) or unanswered
        if queued or lost_answer:
            yield from _leave(ask, caller, error, owe)
        if isinstance(error, StoreError):
            raise errors.unavailable(ask.name, error, now() - begun) from error
        raise


def _slice(ask: Ask, caller: Caller, place: replies.Queued, until: float) -> Park[Any]:
    """Wait a slice; whoever is first wakes up when the holder's lease passes, if it comes to that."""
    end = min(now() + ask.slice, until)
    if place.held.left >= 0:
        end = min(end, now() + place.held.left / 1000 + 0.002)

    return Park(verbs.request(ask, caller, ticket=place.ticket, until=until), caller.wake, end)


def _leave(
    ask: Ask, caller: Caller, error: BaseException, owe: Callable[[Call[Any]], None]
) -> Flow[None]:
    """Abandon: what is still under way must grant nothing to somebody who has gone."""
    call = verbs.end(ask.name, caller.token, "abandoned", resent=True)
    if isinstance(error, GeneratorExit) or isinstance(error, StoreError):
        owe(call)  # nothing can be sent now, or nothing is answered
        return
    try:
        yield call
    except StoreError:
        owe(call)


def renew(call: Call[T]) -> Flow[tuple[T, float]]:
    """Send a renewal, at most twice. Returns the answer and the clock before its own send."""
    sent = now()
    try:
        return (yield call), sent
    except StoreError as error:
        if not error.again:
            raise errors.unavailable(call.name, error) from error
    sent = now()
    try:
        return (yield call), sent
    except StoreError as error:
        raise errors.unavailable(call.name, error) from error


def end(call: Call[replies.Closed], owe: Callable[[Call[Any]], None]) -> Flow[replies.Closed]:
    """Release, at most twice. Without an answer the debt is kept: the token is not forgotten."""
    try:
        try:
            return (yield call)
        except StoreError as error:
            if not error.again:
                raise
        return (yield verbs.resent(call))
    except BaseException as error:
        owe(verbs.resent(call))
        if isinstance(error, StoreError):
            raise errors.unavailable(call.name, error) from error
        raise
