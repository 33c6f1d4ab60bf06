"""Flaws that drafts of the protocol had, put back on purpose: each is one rule changed."""

from __future__ import annotations

from typing import Any

from django_latch.core import replies
from django_latch.core.model import Model
from django_latch.core.model_request import Wish
from django_latch.core.model_state import Record, Tomb
from django_latch.core.model_verbs import Verbs


class ShortensByRenewal(Verbs):
    """A renewal sets the expiry, so a late copy of a shorter one lowers it."""

    def renew(self, lease: int, owner: str, token: str, fence: str | int) -> Any:
        hold = self.standing(token, fence)
        if isinstance(hold, Record):
            hold.exp = min(hold.exp, self.now + lease)
        return super().renew(lease, owner, token, fence)


class ShortensByRequest(Verbs):
    """A request from the holder starts its lease again, also a late copy of the first one."""

    def request(self, *args: Any) -> replies.Request:
        wish = Wish(*args)
        hold = self.standing(wish.token)
        if isinstance(hold, Record):
            hold.exp = self.now + wish.lease
        return super().request(*args)


class LimitOfTheNewcomerOnly(Verbs):
    """Whoever asks with a larger limit walks into an exclusive lock."""

    def fits(self, limit: int) -> bool:
        return len(self.lock.holders) < limit


class StandbyEndsHolds(Verbs):
    """A standby ends what it names, also when its owner was told by now."""

    def stand_by(self, wish: Wish) -> None:
        for holder in self.lock.holders:
            if wish.silent and holder.fence == wish.silent:
                self.finish(holder, "lapsed")


class RenewalOfAnyFence(Verbs):
    """A renewal looks at the token only: after a loss and a late request it says all is well."""

    def renew(self, lease: int, owner: str, token: str, fence: str | int) -> Any:
        return super().renew(lease, owner, token, "")


class EndsTooEarly(Verbs):
    """The end of a lease is judged as if milliseconds had no inside."""

    def live(self, record: Record) -> bool:
        return self.now < record.exp


class ForgetsTheEnded(Verbs):
    """Nothing is remembered of a token that has ended."""

    def tomb(self, token: str) -> Tomb | None:
        return None


class FreshTickets(Verbs):
    """Who comes back after being thought dead stands at the end of the queue."""

    def ticket(self, wish: Wish) -> int:
        known = super().ticket(wish)
        return self.stamp() if known and wish.token not in self.lock.records else known


class CountsThoseWhoReturn(Verbs):
    """After a loss, newcomers fill the queue and a waiter that was let in is put out."""

    def ticket(self, wish: Wish) -> int:
        full = len(self.lock.queue) >= wish.max_waiters and wish.token not in self.lock.queue
        return 0 if full else super().ticket(wish)


class NewcomersPass(Verbs):
    """A newcomer is granted what fits, past a waiter who needs more."""

    def free(self, limit: int) -> bool:
        return self.fits(limit)


class RevivesTheExpired(Verbs):
    """A renewal after the end is accepted, as long as nobody else has come."""

    def standing(self, token: str, fence: str | int = "") -> Any:
        hold = self.hold(token)
        return hold if hold is not None and hold.state == "held" else super().standing(token, fence)


class TrimsWithoutHandingOver(Verbs):
    """Cleaning up ends an expired hold and leaves the waiters asleep."""

    def trim(self) -> list[int]:
        self.sweep("")
        self.changed = True
        return [len(self.lock.holders), len(self.lock.queue)]


def flawed(kind: type[Verbs]) -> type[Model]:
    """The model with a flaw."""
    return type(f"Flawed{kind.__name__}", (Model,), {"verbs": kind})
