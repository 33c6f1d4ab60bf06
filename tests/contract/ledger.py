"""What must be true over many calls: a memory of fences, ended tokens and leases begun."""

from __future__ import annotations

from dataclasses import dataclass, field

from django_latch.core import replies
from django_latch.core.model_request import Wish
from tests.contract.engines import TERMS
from tests.contract.invariants import Step, require

#: Events that end a lease.
ENDS = {"released", "abandoned", "cleared", "expired", "adopted"}


@dataclass
class Ledger:
    """Everything that was seen since the last loss of data."""

    told: dict[str, tuple[int, int]] = field(default_factory=dict)  # token -> fence, until ms
    ended: dict[str, int] = field(default_factory=dict)  # token -> when it ended, server ms
    fences: set[int] = field(default_factory=set)
    highest: int = 0  # fence
    open: set[int] = field(default_factory=set)  # fences of leases that have begun
    closed: set[int] = field(default_factory=set)  # of those that an event has ended
    stepped_back: bool = False  # whether the server's clock ever was
    counter_lost: bool = False  # since the last fence

    def note(self, step: Step) -> None:
        """Take in one call.

        Raises:
            Broken: I3, I5 or I10 does not hold.
        """
        self._grants(step)
        self._fences(step)
        self._ends(step)
        self._events(step)

    def pass_time(self, now: int) -> None:
        """What need not be remembered any longer is gone for good, though the clock be set back."""
        self.told = {token: (f, until) for token, (f, until) in self.told.items() if now <= until}
        self.ended = {t: at for t, at in self.ended.items() if now <= at + TERMS.grace}

    def forget(self) -> None:
        """Data was lost: a token may be told another fence, and an end may go unnoted."""
        self.told.clear()
        self.ended.clear()
        self.open.clear()
        self.counter_lost = True

    def _grants(self, step: Step) -> None:
        for token, record in step.new.records.items():
            if self.told.get(token, (-1, 0))[0] == record.fence:  # it lives, and GRACE longer
                self.told[token] = record.fence, record.exp + TERMS.grace
        for token in self.told.keys() & (step.old.records.keys() - step.new.records.keys()):
            self.told[token] = self.told[token][0], step.now + TERMS.grace
        if isinstance(step.reply, replies.Granted):
            token, fence = Wish(*step.call.args, *step.call.own).token, step.reply.fence
            known, until = self.told.get(token, (fence, 0))
            require(known == fence or step.now > until, 3, f"told {known} and then {fence}")
            self.told[token] = fence, step.now + step.reply.left + TERMS.grace

    def _fences(self, step: Step) -> None:
        now = {r.fence for lock in step.after.locks.values() for r in lock.holders}
        if fresh := now - self.fences:
            # A lost counter begins again with the time, which may have been set back.
            excused = self.counter_lost and self.stepped_back
            rising = min(fresh) > self.highest or excused
            require(rising, 3, f"{min(fresh)} comes after {self.highest}")
            self.counter_lost = False
            self.highest = max(fresh)
            self.fences |= fresh

    def _ends(self, step: Step) -> None:
        call, reply = step.call, step.reply
        if isinstance(reply, replies.Closed) and reply.reason == call.args[0]:
            self.ended.setdefault(str(call.own[0]), step.now)
        if call.verb == "adopt" and isinstance(reply, replies.Renewed):
            self.ended.setdefault(str(call.own[2]), step.now)
        for lock in step.after.locks.values():
            for token in lock.records.keys() & self.ended.keys():
                late = step.now > self.ended[token] + TERMS.grace
                require(late, 5, f"a token that ended became {lock.records[token].state}")
                del self.ended[token]

    def _events(self, step: Step) -> None:
        for event in step.after.events:
            if event.kind in ENDS:
                fence = event.more.get("old", event.fence)
                require(fence not in self.closed, 10, f"{event} ends a lease once more")
                if fence in self.open:
                    self.open.discard(fence)
                    self.closed.add(fence)
            if event.kind in ("acquired", "adopted"):
                self.open.add(event.fence)
