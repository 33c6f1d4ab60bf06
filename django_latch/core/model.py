"""The lock as a plain state machine, without input and output, for one bucket of locks.

Written from the rules of the protocol, not from the scripts: in tests it is their referee. It is
also the store in memory. The verbs take the arguments of the scripts, in the same order, and
answer what `core.replies` makes of a script's reply. Time is an argument.
"""

from __future__ import annotations

from typing import ClassVar, Generic, NamedTuple, TypeVar

from django_latch.core.calls import Call
from django_latch.core.model_snapshot import Snapshots
from django_latch.core.model_state import Bucket, Lock, NextRun, Terms
from django_latch.core.model_verbs import Verbs

T = TypeVar("T")


class _All(Verbs, Snapshots):
    """Every call."""


class Outcome(NamedTuple, Generic[T]):
    """What a call did."""

    reply: T
    woken: tuple[str, ...]  # the wake lists on which a message was put


class Model:
    """The locks of one bucket.

    Attributes:
        bucket: everything that is remembered.
    """

    #: How the calls are carried out.
    verbs: ClassVar[type[Verbs]] = _All

    def __init__(self) -> None:
        self.bucket = Bucket()

    def run(self, call: Call[T], us: int, terms: Terms) -> Outcome[T]:
        """Carry out a call, at once and whole.

        Parameters:
            call: as for a store.
            us: the store's time in microseconds.
            terms: from the settings.
        """
        turn = self.verbs(self.bucket, call.name, us, terms)
        reply = getattr(turn, call.verb)(*call.args, *call.own)
        turn.close()
        return Outcome(reply, tuple(turn.woken))

    def read_wake(self, wake: str, us: int) -> str | None:
        """Take the newest message from a wake list: the token it was for."""
        found = self.bucket.wakes.pop(wake, None)
        if found is None or found.until < us // 1000:
            return None
        message = found.messages.popleft()
        if found.messages:
            self.bucket.wakes[wake] = found
        return message

    def forget(self, us: int) -> None:
        """Drop what no call can see any more. May be left out; it only frees memory."""
        bucket, now = self.bucket, us // 1000
        for name, lock in list(bucket.locks.items()):
            kept = Lock(
                jobs=lock.jobs if max(lock.jobs.values(), default=0) >= now else {},
                next=lock.next if lock.next.ends >= now else NextRun(),
            )
            if lock.until >= now:
                lock.jobs, lock.next = kept.jobs, kept.next
            elif kept == Lock():
                del bucket.locks[name]
            else:
                bucket.locks[name] = kept
        bucket.wakes = {wake: told for wake, told in bucket.wakes.items() if told.until >= now}
        bucket.snapshots = {
            name: kept for name, kept in bucket.snapshots.items() if kept.until >= now
        }
        bucket.waits = {agent: wait for agent, wait in bucket.waits.items() if wait[0] >= now}
        bucket.accounts = {
            account: members
            for account, members in bucket.accounts.items()
            if max(members.values(), default=0) >= now
        }
