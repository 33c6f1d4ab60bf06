"""The model's other calls that change something: renew, shorten, adopt, end and the like."""

from __future__ import annotations

from dataclasses import replace

from django_latch.core.model_look import Looks
from django_latch.core.model_request import Requests
from django_latch.core.model_state import Record
from django_latch.core.replies import Closed, Ended, Renewed


class Verbs(Requests, Looks):
    """The calls on a lock, one method each."""

    def renew(self, lease: int, owner: str, token: str, fence: str | int) -> Renewed | Ended:
        """Raise the expiry of a hold, never lower it."""
        hold = self.standing(token, fence)
        if isinstance(hold, Ended):
            if hold.reason == "missing" and fence:
                self.event(1, "lost", int(fence), "", reason="missing")
            return hold
        hold.lease = max(hold.lease, lease)
        # What the clock's way back has made too long is cut first.
        hold.exp = max(min(hold.exp, self.now + hold.lease), self.now + lease)
        hold.owner = owner or hold.owner
        index = self.bucket.index
        index[self.name] = max(index.get(self.name, 0), hold.exp)
        self.keep(hold.exp - self.now)
        return self.renewed(hold)

    def shorten(self, ms: int, token: str, fence: str | int) -> Renewed | Ended:
        """Lower the expiry of a hold, on proof that its process is dead."""
        hold = self.standing(token, fence)
        if isinstance(hold, Ended):
            return hold
        hold.exp = min(hold.exp, self.now + ms)
        if self.lock.holding == [token] and self.name in self.bucket.index:
            self.bucket.index[self.name] = hold.exp
        return self.renewed(hold)

    def standing(self, token: str, fence: str | int = "") -> Record | Ended:
        """The hold of a token, or why there is none."""
        tomb, record = self.tomb(token), self.lock.records.get(token)
        if tomb is not None:
            return Ended("missing" if tomb.reason == "lapsed" else tomb.reason, tomb.fence)
        if record is None:
            return Ended("missing")
        if self.hold(token) is None or record.state != "held":
            return Ended("missing", record.fence)
        if not self.live(record):
            return Ended("expired", record.fence)
        if fence and int(fence) != record.fence:
            return Ended("superseded", record.fence)
        return record

    def renewed(self, hold: Record) -> Renewed:
        """The answer to a holder."""
        return Renewed(hold.fence, hold.exp - self.now, self.now, len(self.lock.queue))

    def adopt(
        self, lease: int, remember: int, owner: str, token: str, old: str, min_hold: int = 0
    ) -> Renewed | Ended:
        """Hand a hold over to a new owner, with a token and a fence of its own."""
        self.sweep(token)
        source = self.standing(old)
        if self.unknown(token) and isinstance(source, Record):
            # What is left to hold, though the clock may have been set back.
            kept = min(source.hold, self.now + max(source.hold - source.since, 0))
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
                hold=max(kept, self.now + min_hold if min_hold else 0),
                owner=owner,
            )
            source.hold = 0
            tomb = self.finish(source, "adopted", lasts=True)
            # A copy of the message that brought the old token may come as late as that.
            forget = max(tomb.forget, self.now + remember)
            self.lock.tombs[old] = replace(tomb, forget=forget)
            self.need = max(self.need, forget - self.now - self.terms.grace)
            self.take(hold)
            self.event(2, "adopted", hold.fence, owner, old=tomb.fence, held=tomb.held)
        self.settle(token)
        if self.unknown(token) and self.unknown(old):
            return Ended("taken" if self.lock.holders else "missing")
        end = self.standing(old if self.unknown(token) else token)
        return end if isinstance(end, Ended) else self.renewed(end)

    def end(
        self,
        reason: str,
        resent: int,
        token: str,
        fence: str | int,
        job: str,
        keep_job_for: int,
        note: str,
    ) -> Closed:
        """Release, abandon or clear; then hand over."""
        tomb, record = self.tomb(token), self.lock.records.get(token)
        held, was = (tomb.held, tomb.fence) if tomb else (0, record.fence if record else 0)
        if not self.unknown(token) and fence and int(fence) != was:
            return Closed("superseded", held, was)
        if (final := self.final(token)) is not None:
            return Closed(final.reason, final.held, final.fence)
        self.sweep(token)
        if (final := self.final(token)) is not None:
            closed = Closed(final.reason, final.held, final.fence)
        elif (record := self.lock.records.get(token)) is not None:
            closed = self.leave(record, reason, bool(resent), note)
            if job and record.state == "held":
                self.remember(job, keep_job_for)
        else:
            closed = self.nothing(token, reason, resent, fence)
        self.settle(token)
        return replace(closed, offered=self.offered) if self.lock.queue else closed

    def leave(self, record: Record, reason: str, resent: bool, note: str) -> Closed:
        """End a hold or a place."""
        tomb = self.finish(record, reason, lasts=resent)
        if record.state == "queued":
            self.event(1, "timed_out", 0, record.owner)
        elif reason == "revoked":
            self.event(1, "cleared", record.fence, record.owner, held=tomb.held, note=note)
        else:
            self.event(2, reason, record.fence, record.owner, held=tomb.held, note=note)
        return Closed(reason, tomb.held, record.fence)

    def nothing(self, token: str, reason: str, resent: int, fence: str | int) -> Closed:
        """The token has nothing. If its request may be under way, that must get nothing."""
        tomb = self.tomb(token)
        was, ticket = (tomb.fence, tomb.ticket) if tomb else (int(fence or 0), 0)
        if resent == 1 or reason == "abandoned":
            self.bury(token, reason, was, ticket, 0, lasts=bool(resent))
            return Closed(reason, 0, was)
        return Closed("taken" if self.lock.holders else "never_held", 0, was)

    def remember(self, job: str, ms: int) -> None:
        """A job has finished: another copy of its message must not run it again."""
        jobs = self.lock.jobs
        for old in [old for old, until in jobs.items() if until <= self.now]:
            del jobs[old]
        jobs[job] = self.now + ms

    def nudge(self, fence: int) -> int:
        """Tell the first in the queue of an offer that nobody may be there to take."""
        second = next((self.place(token) for token in self.lock.line()), None)
        if second is None or not second.wake:
            return 0
        for holder in self.lock.holders:
            if holder.state == "offered" and holder.fence == fence and self.unread(holder):
                self.tell(second.wake, f"{second.token} {fence}", self.terms.live)
                return 1
        return 0

    def waits(self, agent: str, other: str) -> str:
        """Say that an agent waits for this lock; read which one another waits for."""
        waits = self.bucket.waits
        if agent:
            waits[agent] = self.now + self.terms.live, self.name
        until, name = waits.get(other, (0, ""))
        return name if self.now <= until else ""

    def account(self, account: str, most: int, ms: int, member: str) -> int:
        """Count a member among an account's for so many ms; `most` 0 takes it out."""
        members = self.bucket.accounts.setdefault(account, {})
        for old in [old for old, until in members.items() if until < self.now]:
            del members[old]
        if not most:
            members.pop(member, None)
        elif member not in members and len(members) >= most:
            return -1
        else:
            members[member] = max(members.get(member, 0), self.now + ms)
        return len(members)

    def trim(self) -> list[int]:
        """Settle a lock whose entry in the index has passed."""
        if not self.lock.records and not self.lock.tombs:
            if self.bucket.index.pop(self.name, None) is not None:
                self.event(1, "expired", 0, "")
            return [0, 0]
        self.sweep("")
        self.settle("")
        self.changed = True
        return [len(self.lock.holders), len(self.lock.queue)]
