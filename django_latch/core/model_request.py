"""The request of the model: acquire and poll in one."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django_latch.core import replies
from django_latch.core.model_slot import Slots
from django_latch.core.model_state import Record

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


class Requests(Slots):
    """Asking for the lock."""

    def request(self, *args: Any) -> replies.Request:
        """Ask, with a token of one's own. Safe to run any number of times."""
        wish = Wish(*args)
        token = wish.token
        self.sweep(token)
        if (refusal := self.refusal(wish)) is not None:
            self.settle(token)
            return refusal
        newcomer, was_queued = self.unknown(token), self.place(token) is not None
        ticket = self.ticket(wish)
        if wish.wait and ticket and self.hold(token) is None:
            self.enqueue(wish, ticket)
        if was_queued:
            self.stand_by(wish)
        self.settle(token)
        hold = self.hold(token)
        if hold is not None and hold.state == "offered":
            hold = self.grant(wish, hold.fence, hold.ticket)
        elif newcomer and not ticket and self.free(wish.limit):
            hold = self.grant(wish, self.stamp(), 0)
        if hold is not None:
            payload = self.carried(wish.job)
            stale = self.stale() if payload is None and not hold.ticket else ()
            return replies.Granted(hold.fence, hold.exp - self.now, stale, payload)
        return self.wait(wish, newcomer and not ticket)

    def refusal(self, wish: Wish) -> replies.Ended | None:
        """What an ended token, or a finished job, is told."""
        if (end := self.final(wish.token)) is not None:
            return replies.Ended(end.reason, end.fence)
        record = self.lock.records.get(wish.token)
        told = record is not None and record.state == "held"
        if told or self.now >= self.lock.jobs.get(wish.job, 0):
            return None
        if record is not None:  # another copy of its message did the work while this one waited
            self.finish(record, "finished")
        return replies.Ended("finished", record.fence if record else 0)

    def free(self, limit: int) -> bool:
        """Whether a newcomer may have it: past nobody, not even who waits for more."""
        return not self.lock.queue and self.fits(limit)

    def wait(self, wish: Wish, newcomer: bool) -> replies.Request:
        """The answer to whoever gets nothing now."""
        if newcomer and wish.wait:
            if len(self.lock.queue) >= wish.max_waiters:
                self.event(1, "refused", 0, wish.owner, reason="full")
                return replies.Full(self.earliest())
            self.enqueue(wish, self.stamp())
            self.event(1, "queued", 0, wish.owner)
        if wish.token in self.lock.queue:
            ticket = self.lock.queue[wish.token]
            return replies.Queued(ticket, self.lock.line().index(wish.token), self.earliest())
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
        until = self.now + self.terms.live
        self.lock.tombs.pop(wish.token, None)
        self.lock.queue[wish.token] = ticket
        self.lock.alive[wish.token] = until
        self.lock.records[wish.token] = Record(
            token=wish.token,
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
        if not wish.silent or self.lock.line()[0] != wish.token:
            return
        for holder in self.lock.holders:
            old = holder.state == "offered" and self.now - holder.since >= FRESH
            if old and holder.fence == wish.silent and self.unread(holder):
                self.finish(holder, "lapsed")

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

    def many(
        self, lease: int, limit: int, claim: int, owner: str, *pairs: str
    ) -> tuple[int, list[int]] | str:
        """Take several locks that are all free, or none of them."""
        names, tokens = pairs[0::2], pairs[1::2]
        turns = [self, *(type(self)(self.bucket, n, self.us, self.terms) for n in names[1:])]
        holds = []
        for turn, token in zip(turns, tokens, strict=True):
            hold = turn.hold(token)
            alone = turn.lock.holding == [token] and hold is not None and hold.state == "held"
            if hold is not None and alone and turn.live(hold):
                holds.append(hold)  # by an earlier copy of this call
            elif turn.lock.holding or turn.lock.queue or not turn.unknown(token):
                return turn.name
        if not holds:
            shared = (lease, limit, 0, claim, 0, 0, 0, owner, "", "")
            for turn, token in zip(turns, tokens, strict=True):
                holds.append(turn.grant(Wish(*shared, token, 0, 0), turn.stamp(), 0))
                turn.close()
        if len(holds) < len(names):
            return names[-1]
        left = min(hold.exp for hold in holds) - self.now
        return min(left, lease), [hold.fence for hold in holds]

    def earliest(self) -> replies.Held:
        """The holder whose lease ends first."""
        first = min(self.lock.holders, key=lambda holder: holder.exp, default=None)
        if first is None:
            return replies.Held(-1)
        return replies.Held(first.exp - self.now, first.fence, first.since, first.owner)

    def stale(self) -> tuple[str, ...]:
        """Names of other locks whose leases have passed and whose end nobody noted yet."""
        others = [(at, name) for name, at in self.bucket.index.items() if name != self.name]
        return tuple(name for at, name in sorted(others) if at < self.now)[:STALE]
