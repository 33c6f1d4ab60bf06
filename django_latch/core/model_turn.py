"""One call on one lock at one moment: the steps that all calls share."""

from __future__ import annotations

from typing import Any, Final

from django_latch.core.model_state import Bucket, Event, Lock, Record, Terms, Tomb, WakeList

#: Tombs kept per lock: those that only serve nicer answers, and those that must last. Twice as
#: many may gather before they are cut back.
TOMBS: Final = {False: 32, True: 1000}


class Turn:
    """A call under way.

    Parameters:
        bucket: what is remembered; changed in place.
        name: of the lock.
        us: the store's time in microseconds. Fences and tickets need them; all else is judged
            in whole milliseconds, rounded down.
        terms: from the settings.
    """

    def __init__(self, bucket: Bucket, name: str, us: int, terms: Terms) -> None:
        self.bucket = bucket
        self.name = name
        self.us = us
        self.now = us // 1000
        self.terms = terms
        self.lock = bucket.locks.setdefault(name, Lock())
        self.woken: list[str] = []  # wake lists that a message was put on
        self.offered = 0  # fence of the last offer that somebody was told of
        self.changed = False
        self.buried = False
        self.need = 0  # ms for which something that was written matters, holders and waiters aside
        if self.lock.until < self.now:
            self.lock = bucket.locks[name] = Lock(jobs=self.lock.jobs, next=self.lock.next)

    # What is known

    def unknown(self, token: str) -> bool:
        """Whether nothing is remembered of this token."""
        return self.tomb(token) is None and token not in self.lock.records

    def hold(self, token: str) -> Record | None:
        """The record that keeps a permit for this token, expired or not."""
        return self.lock.records.get(token) if token in self.lock.holding else None

    def place(self, token: str) -> Record | None:
        """Its record in the queue."""
        record = self.lock.records.get(token)
        return record if record is not None and record.state == "queued" else None

    def tomb(self, token: str) -> Tomb | None:
        """How it ended, unless that is long ago."""
        tomb = self.lock.tombs.get(token)
        return tomb if tomb is not None and self.now <= tomb.forget else None

    def final(self, token: str) -> Tomb | None:
        """A tomb that nothing comes back from: all but `lapsed`."""
        tomb = self.tomb(token)
        return tomb if tomb is not None and tomb.reason != "lapsed" else None

    def live(self, record: Record) -> bool:
        """Strict: the store's time is cut to ms, so an exp of now has not passed for certain."""
        return self.now <= record.exp

    def fits(self, limit: int) -> bool:
        """Whether one more may hold: its own limit is kept, and that of every holder."""
        holders = self.lock.holders
        return len(holders) < min([limit, *(holder.limit for holder in holders)])

    # Notes

    def stamp(self) -> int:
        """A fence or ticket: larger than any before, and not smaller after the loss of all."""
        self.bucket.stamp = max(self.bucket.stamp + 1, self.us)
        return self.bucket.stamp

    def event(self, level: int, kind: str, fence: int, owner: str, **more: Any) -> None:
        """Note what happened, where the settings want it."""
        if self.terms.events < level:
            return
        self.bucket.events.append(Event(kind, self.name, self.now, fence, owner, more))
        while len(self.bucket.events) > self.terms.events_max:
            self.bucket.events.popleft()

    # Ends

    def bury(
        self, token: str, reason: str, fence: int, ticket: int, held: int, *, lasts: bool
    ) -> Tomb:
        """Remember how a token ended."""
        tombs, forget = self.lock.tombs, self.now + self.terms.grace
        tombs[token] = tomb = Tomb(reason, fence, ticket, held, forget, lasts)
        self.buried = self.changed = True
        same = [other for other in tombs if tombs[other].lasts == lasts]
        if len(same) >= 2 * TOMBS[lasts]:
            for other in sorted(same, key=lambda token: tombs[token].forget)[: -TOMBS[lasts]]:
                del tombs[other]
        return tomb

    def finish(self, record: Record, reason: str, *, lasts: bool = False) -> Tomb:
        """End a hold or a place. A permit that must be kept longer cools, owned by nobody."""
        token, lock = record.token, self.lock
        lock.records.pop(token, None)
        lock.queue.pop(token, None)
        lock.alive.pop(token, None)
        if token in lock.holding:
            lock.holding.remove(token)
        told = record.state == "held"
        held = max(min(self.now, record.exp) - record.since, 0) if told else 0
        # No longer than was asked for, though the clock may have been set back.
        left = min(record.hold - self.now, record.hold - record.since)
        if told and left > 0:
            self.cool(record, left)
        return self.bury(token, reason, record.fence, record.ticket, held, lasts=lasts)

    def cool(self, record: Record, left: int) -> None:
        """Keep the permit of a hold that has ended, for as long as it was to last at least."""
        token = f"cooling:{record.fence}"
        self.lock.records[token] = Record(
            token=token,
            state="cooling",
            fence=record.fence,
            exp=self.now + left,
            lease=left,
            limit=record.limit,
            since=record.since,
            owner=record.owner,
        )
        self.lock.holding.append(token)

    # Time passes

    def sweep(self, caller: str) -> None:
        """End what has expired, the caller's own hold among it, but never its place."""
        lock = self.lock
        if any(token not in lock.records for token in lock.holding):
            lock.holding = [token for token in lock.holding if token in lock.records]
            self.changed = True
        for holder in lock.holders:
            span = holder.claim if holder.state == "offered" else holder.lease
            if holder.exp > self.now + span:  # the clock was set back
                holder.exp = self.now + span
                self.changed = True
        for holder in [holder for holder in lock.holders if not self.live(holder)]:
            self.expire(holder)
        if not lock.queue:
            return  # who stands in no queue has no place to lose
        latest = self.now + self.terms.live
        for token, until in list(lock.alive.items()):
            lock.alive[token] = min(until, latest)
            if until < self.now and token != caller:
                self.lapse(token)

    def expire(self, holder: Record) -> None:
        """The time of a hold, an offer or a cooling permit has passed."""
        if holder.state == "cooling":
            self.lock.holding.remove(holder.token)
            del self.lock.records[holder.token]
            self.changed = True
        elif holder.state == "offered":
            self.finish(holder, "lapsed")
        else:
            held = max(holder.exp - holder.since, 0)
            self.event(1, "expired", holder.fence, holder.owner, held=held)
            self.finish(holder, "expired")

    def lapse(self, token: str) -> None:
        """A waiter has not polled in time. It keeps its ticket, should it come back."""
        place = self.place(token)
        if place is not None:
            self.finish(place, "lapsed")
        else:  # its record was lost
            self.lock.queue.pop(token, None)
            self.lock.alive.pop(token, None)

    # Turns

    def take(self, record: Record) -> None:
        """Write a new hold."""
        token, lock = record.token, self.lock
        lock.tombs.pop(token, None)
        if token in lock.holding:
            lock.holding.remove(token)
        lock.holding.append(token)
        lock.records[token] = record
        self.changed = True

    def settle(self, caller: str) -> None:
        """Offer what is free to whoever is first, and wake them."""
        for token in self.lock.line():
            place = self.place(token)
            if place is not None and not self.fits(place.limit):
                return
            del self.lock.queue[token]
            self.lock.alive.pop(token, None)
            if place is not None:
                self.offer(place, caller)

    def offer(self, place: Record, caller: str) -> None:
        """Nobody's lock yet: only the waiter's own request makes it a hold."""
        place.state = "offered"
        place.fence = self.stamp()
        place.since = self.now
        place.exp = self.now + place.claim
        self.lock.holding.append(place.token)
        self.changed = True
        if place.token != caller and place.wake:
            self.offered = place.fence
            self.tell(place.wake, place.token, place.claim + self.terms.live)

    def tell(self, wake: str, message: str, ms: int) -> None:
        """Put a message on a wake list, which then lasts for so long."""
        wakes = self.bucket.wakes.setdefault(wake, WakeList())
        wakes.messages.appendleft(message)
        wakes.until = self.now + ms
        self.woken.append(wake)

    def unread(self, offered: Record) -> bool:
        """Whether the message of an offer still lies on its wake list."""
        wakes = self.bucket.wakes.get(offered.wake)
        return wakes is not None and self.now <= wakes.until and offered.token in wakes.messages

    # Afterwards

    def keep(self, ms: int) -> None:
        """Raise the physical deadline, where it must be, by more than it must."""
        least = ms + self.terms.grace
        if self.lock.until - self.now < least:
            self.lock.until = self.now + least + least // 8

    def close(self) -> None:
        """Bring index and physical deadline in line with what was changed."""
        if not self.changed:
            return
        lock, grace = self.lock, self.terms.grace
        last = max((holder.exp for holder in lock.holders), default=0)
        if lock.queue:
            last = max(last, self.now + self.terms.live)
        if last:
            self.bucket.index[self.name] = last
            self.keep(max(last - self.now, self.need))
            return
        self.bucket.index.pop(self.name, None)
        # Only the tombs are left: they alone decide, but nobody hurries to lower a deadline.
        if not self.now <= lock.until <= self.now + 3 * grace:
            lock.until = max(self.now + 1, *(tomb.forget for tomb in lock.tombs.values()), 0)
        if self.buried:
            lock.until = max(lock.until, self.now + grace)
