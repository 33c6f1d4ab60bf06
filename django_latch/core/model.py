"""The lock as a plain state machine, without input and output, for one bucket of locks.

Written from the rules of the protocol, not from the scripts: in tests it is their referee. It is
also the store in memory. Verbs take the arguments of the scripts, in the same order, and answer
what `core.replies` makes of a script's reply. Time is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django_latch.core import replies
from django_latch.core.calls import Call
from django_latch.core.model_state import Bucket, Record, Terms
from django_latch.core.model_turn import Turn
from django_latch.core.owner import Owner
from django_latch.core.replies import Closed, Ended, Held, Renewed

__all__ = ["Model", "Outcome", "Terms", "Turn", "Verbs", "Wish"]

T = TypeVar("T")

#: An offer younger than this, in ms, is not taken from a silent waiter.
FRESH: Final = 20

#: Names of other locks whose leases have passed, told with a grant.
STALE: Final = 3


class Wish(NamedTuple):
    """The arguments of a request. Times in ms, the ticket in microseconds."""

    lease: int
    limit: int
    wait: int
    claim: int
    hold: int
    max_waiters: int
    longest: int
    owner: str
    wake: str
    job: str
    token: str
    ticket: int
    silent: int


class Outcome(NamedTuple, Generic[T]):
    """What a call did."""

    reply: T
    woken: tuple[str, ...]  # wake lists that a message was put on


class Verbs(Turn):
    """The calls, one method each."""

    # request

    def request(self, *args: Any) -> replies.Request:
        """Acquire and poll in one."""
        wish = Wish(*args)
        token = wish.token
        self.sweep(token)
        known = self.tomb(token) is not None or token in self.lock.records
        if (end := self.final(token)) is not None:
            self.settle(token)
            return Ended(end.reason, end.fence)
        if wish.job and not known and self.now <= self.lock.jobs.get(wish.job, -1):
            self.settle(token)
            return Ended("finished")
        was_queued = self.place(token) is not None
        ticket = self.ticket(wish)
        if wish.wait and ticket and self.hold(token) is None:
            self.enqueue(wish, ticket)
        if was_queued:
            self.stand_by(wish)
        self.settle(token)
        hold = self.hold(token)
        if hold is None and not known and not ticket:
            hold = self.enter(wish)
            if hold is None and wish.wait:
                if len(self.lock.queue) >= wish.max_waiters:
                    self.event(1, "refused", 0, wish.owner, reason="full")
                    return replies.Full(self.earliest())
                ticket = self.stamp()
                self.enqueue(wish, ticket)
                self.event(1, "queued", 0, wish.owner)
        elif hold is not None and hold.state == "offered":
            hold = self.grant(wish, hold.fence, hold.ticket)
        if hold is not None:
            self.close()
            return replies.Granted(hold.fence, hold.exp - self.now, self.stale())
        if token in self.lock.queue:
            return replies.Queued(ticket, self.lock.line().index(token), self.earliest())
        self.event(1, "refused", 0, wish.owner, reason="busy")
        return replies.Busy(self.earliest())

    def ticket(self, wish: Wish) -> int:
        """The ticket that keeps the caller's place; 0 for a newcomer."""
        record, tomb = self.lock.records.get(wish.token), self.tomb(wish.token)
        known = record.ticket if record else tomb.ticket if tomb else 0
        newest = max(self.us, self.bucket.stamp)
        if not known and self.us - wish.longest * 1000 <= wish.ticket <= newest:
            known = wish.ticket
        return known

    def enqueue(self, wish: Wish, ticket: int) -> None:
        """Stand in the queue, anew or still: a living waiter."""
        token, until = wish.token, self.now + self.terms.live
        self.lock.tombs.pop(token, None)
        self.lock.queue[token] = ticket
        self.lock.alive[token] = until
        self.lock.records[token] = Record(
            token=token,
            state="queued",
            exp=until,
            lease=wish.lease,
            claim=wish.claim,
            limit=wish.limit,
            ticket=ticket,
            since=self.now,
            wake=wish.wake,
            owner=wish.owner,
        )
        self.changed = True

    def stand_by(self, wish: Wish) -> None:
        """The head of the queue ends an offer that nobody takes."""
        if not wish.silent or self.lock.line()[:1] != [wish.token]:
            return
        for holder in self.lock.holders:
            old = holder.state == "offered" and self.now - holder.since >= FRESH
            if old and holder.fence == wish.silent and self.unread(holder):
                self.finish(holder, "lapsed")

    def unread(self, offered: Record) -> bool:
        """Whether the message of an offer still lies on its wake list."""
        wakes = self.bucket.wakes.get(offered.wake)
        return (
            wakes is not None and self.now <= wakes.until and offered.token in wakes.messages
        )

    def enter(self, wish: Wish) -> Record | None:
        """Grant a newcomer what is free, past nobody."""
        if self.lock.queue or not self.fits(wish.limit):
            return None
        return self.grant(wish, self.stamp(), 0)

    def grant(self, wish: Wish, fence: int, ticket: int) -> Record:
        """Make it a hold, with the full lease from now."""
        record = Record(
            token=wish.token,
            state="held",
            fence=fence,
            exp=self.now + wish.lease,
            lease=wish.lease,
            claim=wish.claim,
            limit=wish.limit,
            ticket=ticket,
            since=self.now,
            hold=self.now + wish.hold if wish.hold else 0,
            wake=wish.wake,
            owner=wish.owner,
        )
        self.take(record)
        waited = max(self.now - ticket // 1000, 0) if ticket else 0
        self.event(2, "acquired", fence, wish.owner, waited=waited)
        return record

    def take(self, record: Record) -> None:
        """Write a new hold."""
        if record.token in self.lock.holding:
            self.lock.holding.remove(record.token)
        self.lock.holding.append(record.token)
        self.lock.records[record.token] = record
        self.changed = True

    def earliest(self) -> Held:
        """The holder whose lease ends first."""
        first = min(self.lock.holders, key=lambda holder: holder.exp, default=None)
        if first is None:
            return Held(-1, owner=Owner.from_json(""))
        owner = Owner.from_json(first.owner)
        return Held(first.exp - self.now, first.fence, first.since, owner)

    def stale(self) -> tuple[str, ...]:
        """Names of locks whose leases have passed and whose end nobody noted yet."""
        passed = sorted((at, name) for name, at in self.bucket.index.items() if at < self.now)
        return tuple(name for _, name in passed[:STALE])

    # A holder's other calls

    def standing(self, token: str, fence: str | int) -> Record | Ended:
        """The hold of a token, or why there is none."""
        tomb, record = self.tomb(token), self.lock.records.get(token)
        if tomb is not None:
            return Ended("missing" if tomb.reason == "lapsed" else tomb.reason, tomb.fence)
        hold = self.hold(token)
        if hold is None or hold.state != "held":
            return Ended("missing", record.fence if record else 0)
        if not self.live(hold):
            return Ended("expired", hold.fence)
        if fence and int(fence) != hold.fence:
            return Ended("superseded", hold.fence)
        return hold

    def renew(self, lease: int, owner: str, token: str, fence: str | int) -> Renewed | Ended:
        """Raise the expiry of a hold, never lower it."""
        hold = self.standing(token, fence)
        if isinstance(hold, Ended):
            if hold.reason == "missing" and fence:
                self.event(1, "lost", int(fence), "", reason="missing")
            return hold
        hold.lease = max(hold.lease, lease)
        if hold.exp > self.now + hold.lease:  # the clock was set back
            hold.exp = self.now + hold.lease
        hold.exp = self.later(hold.exp, self.now + lease)
        hold.owner = owner or hold.owner
        index = self.bucket.index
        index[self.name] = max(index.get(self.name, 0), hold.exp)
        self.lock.until = max(self.lock.until, hold.exp + self.terms.grace)
        return self.renewed(hold)

    @staticmethod
    def later(old: int, new: int) -> int:
        """What a renewal makes of an expiry."""
        return max(old, new)

    def renewed(self, hold: Record) -> Renewed:
        """The answer to a holder."""
        return Renewed(hold.fence, hold.exp - self.now, self.now, len(self.lock.queue))

    def shorten(self, ms: int, token: str, fence: str | int) -> Renewed | Ended:
        """Lower the expiry of a hold, on proof that its process is dead."""
        hold = self.standing(token, fence)
        if isinstance(hold, Ended):
            return hold
        hold.exp = min(hold.exp, self.now + ms)
        return self.renewed(hold)

    def adopt(self, lease: int, owner: str, token: str, old: str) -> Renewed | Ended:
        """Hand a hold over to a new owner, with a token and a fence of its own."""
        self.sweep(token)
        hold, source = self.hold(token), self.hold(old)
        fresh = self.tomb(token) is None and token not in self.lock.records
        if fresh and source is not None and source.state == "held":
            hold = Record(
                token=token,
                state="held",
                fence=self.stamp(),
                exp=self.now + lease,
                lease=lease,
                claim=source.claim,
                limit=source.limit,
                ticket=source.ticket,
                since=self.now,
                hold=min(source.hold, self.now + source.hold - source.since),
                owner=owner,
            )
            source.hold = 0
            tomb = self.finish(source, "adopted", lasts=True)
            self.take(hold)
            self.event(2, "adopted", hold.fence, owner, old=tomb.fence, held=tomb.held)
        self.settle(token)
        if hold is not None and hold.state == "held":
            return self.renewed(hold)
        if not fresh:
            return self.ended(token)
        if self.tomb(old) is None and old not in self.lock.records:
            return Ended("taken" if self.lock.holders else "missing")
        return self.ended(old)

    def ended(self, token: str) -> Ended:
        """Why a known token has no hold."""
        end = self.standing(token, "")
        return end if isinstance(end, Ended) else Ended("missing", end.fence)

    # end

    def end(
        self,
        reason: str,
        resent: int,
        token: str,
        fence: str | int,
        job: str = "",
        keep_job_for: int = 0,
        note: str = "",
    ) -> Closed:
        """Release, abandon or clear."""
        tomb, record = self.tomb(token), self.lock.records.get(token)
        known = tomb or record
        if known is not None and fence and int(fence) != known.fence:
            return Closed("superseded", tomb.held if tomb else 0, known.fence)
        if (final := self.final(token)) is not None:
            return Closed(final.reason, final.held, final.fence)
        self.sweep(token)
        if (final := self.final(token)) is None:
            final = self.leave(reason, bool(resent), token, job, keep_job_for, note)
        self.settle(token)
        return final

    def leave(
        self, reason: str, resent: bool, token: str, job: str, keep_job_for: int, note: str
    ) -> Closed:
        """End what the token has, or make sure that it never gets anything."""
        record = self.lock.records.get(token)
