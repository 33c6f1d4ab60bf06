"""The model's one next run of a lock, for calls that found it held."""

from __future__ import annotations

from typing import Final

from django_latch.core.model_state import NextRun
from django_latch.core.model_turn import Turn
from django_latch.core.replies import Slot

#: How long an unclaimed next run is kept, in ms.
WEEK: Final = 604_800_000


class Slots(Turn):
    """Who carries the next run, and with what."""

    def slot(self, what: str, live: int, job: str, payload: str) -> Slot:
        """Claim the next run, raise its deadline, or revive one that is overdue."""
        run = self.run()
        overdue = bool(run.job) and self.now > run.until
        if what == "raise" and not run.job and run.ran != job:
            what = "claim"  # nothing is known of its carrier: the data was lost
        if what == "pass":
            own, _, heir = payload.partition("\n")
            if run.job == job:  # another carries it, unless no later call has left its arguments
                run.job = "" if _made(run.payload) == int(own) else heir
            job = heir
        if what == "claim" and run.job != job:
            if run.job and _task(payload) != _task(run.payload):
                return Slot("other", run.job)
            if not run.job or _made(payload) >= _made(run.payload):
                run.payload = payload  # of the latest call, in whatever order they are met
            if run.job and not overdue:
                return Slot("merged", run.job, run.payload)
            run.job = job
        if not run.job:
            self.bucket.due.pop(self.name, None)
        if not run.job or {
            "raise": run.job != job,
            "pass": run.job != job,
            "revive": not overdue,
        }.get(what, False):
            return Slot("none")
        run.until = self.bucket.due[self.name] = self.now + live
        run.ends = max(run.ends, self.now + WEEK)
        return Slot("carrier", run.job, run.payload)

    def carried(self, job: str) -> str | None:
        """What a job that now holds the lock is to run with, if it carries the next run."""
        run = self.run()
        if not job:
            return None
        if run.job == job:
            # Its run begins: a call from now on asks for another one.
            run.job, run.ran, run.given = "", job, run.payload
            run.ends = self.now + self.terms.grace
            self.bucket.due.pop(self.name, None)
        return run.given if run.ran == job else None

    def run(self) -> NextRun:
        """What is remembered of the next run."""
        if self.lock.next.ends < self.now:
            self.lock.next = NextRun()
        return self.lock.next


def _task(payload: str) -> str:
    """Whose arguments a payload has."""
    return payload.partition("\n")[0]


def _made(payload: str) -> int:
    """When the call was made that has these arguments."""
    made = payload.partition("\n")[2].partition("\n")[0]
    return int(made) if made.isdigit() else 0
