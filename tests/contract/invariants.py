"""What must be true after every call, whoever carried it out.

The numbers are those of the rules a lock is built on:

1   the expiry of a hold is not lowered
3   fences rise in the order of grants; one token is told one fence
4   a call changes no record of another token that has not run out
5   a call run twice is a call run once
6   no permit is free beside a living waiter whose limit fits
7   nobody passes a waiter; a place is kept
9   each record is a hold, a place or a tomb, and listed where it belongs
11  little is remembered of what has ended

(2, that who believes in a hold has one, is about the callers: see `world`. 8, that keys end, and
late enough, is about the server: see `test_machine`. 10, 12 and 13 are about how it all ends.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django_latch.core import replies
from django_latch.core.calls import Call
from django_latch.core.model_request import Wish
from django_latch.core.model_state import Lock, Record
from tests.contract.state import State

#: Verbs after which nobody may wait for what is free.
SETTLE = {"request", "end", "adopt", "trim"}


class Broken(AssertionError):
    """An invariant does not hold."""


def require(fact: object, number: int, text: str) -> None:
    if not fact:
        raise Broken(f"I{number}: {text}")


@dataclass
class Step:
    """One call on one lock, with what was there before and after."""

    call: Call[Any]
    before: State
    after: State
    reply: Any

    def __post_init__(self) -> None:
        self.now = self.after.now
        self.old = self.before.lock(self.call.name)
        self.new = self.after.lock(self.call.name)
        self.callers = set(self.call.own) & {*self.old.records, *self.new.records}

    def check(self) -> None:
        expiry_not_lowered(self)
        expiry_is_final(self)
        others_unharmed(self)
        nobody_passes(self)
        if self.call.verb in SETTLE:
            nothing_left_free(self)
        few_tombs(self.new)


def expiry_not_lowered(step: Step) -> None:
    if step.call.verb == "shorten":
        return
    for token, was in step.old.records.items():
        record = step.new.records.get(token)
        if was.state == "held" and record is not None and record.state == "held":
            # All that may cut it is the clock's way back: to a whole lease from now.
            least = min(was.exp, step.now + was.lease)
            require(record.exp >= least, 1, f"{was.exp} became {record.exp} by {step.call.verb}")


def expiry_is_final(step: Step) -> None:
    """A hold that is over is not renewed, though nobody took it."""
    if isinstance(step.reply, replies.Renewed) and step.call.verb != "adopt":
        hold = step.old.records[next(iter(step.callers))]
        require(step.now <= hold.exp, 1, f"{step.call.verb} revived {hold}")


def others_unharmed(step: Step) -> None:
    for token, was in step.old.records.items():
        record = step.new.records.get(token)
        if token in step.callers or record == was or clamped(was, record, step.now):
            continue
        match was.state:
            case "held" | "cooling":
                fine = step.now > was.exp and record is None
            case "offered":
                gone = step.now > was.exp or named(step.call) == was.fence
                fine = gone and record is None
            case "queued":
                offered = record is not None and record.state == "offered"
                fine = offered or step.now > step.old.alive.get(token, 0)
        require(fine, 4, f"{step.call.verb} changed another's {was} to {record}")


def named(call: Call[Any]) -> int:
    """The fence of the offer that a request says nobody takes."""
    return Wish(*call.args, *call.own).silent if call.verb == "request" else 0


def clamped(was: Record, record: Record | None, now: int) -> bool:
    """Whether the clock's way back explains the change."""
    span = was.claim if was.state == "offered" else was.lease
    if record is None or was.exp <= now + span:
        return False
    same = (record.token, record.state, record.fence) == (was.token, was.state, was.fence)
    return same and record.exp == now + span


def nobody_passes(step: Step) -> None:
    """Offers go to the front of the queue; a newcomer gets nothing while anybody waits."""
    waiting = [
        t for t, until in step.old.alive.items() if until >= step.now and t in step.old.queue
    ]
    new = {t: r for t, r in step.new.records.items() if r.fence and t not in step.callers}
    for token, record in new.items():
        if record.state == "offered" and step.old.records.get(token) != record:
            ahead = [t for t in waiting if step.new.queue.get(t, record.ticket) < record.ticket]
            require(not ahead, 7, f"an offer passed {len(ahead)} waiters")
    if isinstance(step.reply, replies.Granted):
        token = Wish(*step.call.args, *step.call.own).token
        hold = step.new.records[token]
        was = step.old.records.get(token)
        if was is None or was.state == "queued":
            ahead = [
                t
                for t in waiting
                if t in step.new.queue and (not hold.ticket or step.new.queue[t] < hold.ticket)
            ]
            require(not ahead, 7, f"a grant passed {len(ahead)} waiters")


def nothing_left_free(step: Step) -> None:
    lock = step.new
    for token in lock.line():
        record = lock.records.get(token)
        if record is not None:  # else its record was lost
            limit = min([record.limit, *(holder.limit for holder in lock.holders)])
            require(len(lock.holders) >= limit, 6, f"{token} waits for a free permit")
            return


def few_tombs(lock: Lock) -> None:
    for lasts, most in ((False, 64), (True, 2000)):
        require(sum(t.lasts == lasts for t in lock.tombs.values()) < most, 11, "many tombs")


def permits_fit(lock: Lock) -> None:
    """No more records keep a permit than the least limit among them."""
    holders = lock.holders
    least = min((holder.limit for holder in holders), default=1)
    require(len(holders) <= least, 2, f"{len(holders)} permits under a limit of {least}")


def all_agree(state: State, *, index: bool) -> None:
    """Each record is in exactly one place, and the index, if it is whole, names its lock."""
    for name, lock in state.locks.items():
        places = {t for t, r in lock.records.items() if r.state == "queued"}
        require(set(lock.holding) == lock.records.keys() - places, 9, "holders are not the holds")
        require(len(lock.holding) == len(set(lock.holding)), 9, "a holder is listed twice")
        require(lock.queue.keys() == places, 9, "the queue is not the places")
        require(lock.alive.keys() & places == places, 9, "a place without a deadline")
        require(not lock.tombs.keys() & lock.records.keys(), 9, "a tomb of a living token")
        for token in places:
            require(lock.queue[token] == lock.records[token].ticket, 9, "two tickets")
        alive = (lock.alive[token] for token in places)
        need = max([holder.exp for holder in lock.holders] or alive, default=0)
        at = state.index.get(name, 0)
        require(at >= need or not index, 9, f"the index says {at} of {name}, its records {need}")
