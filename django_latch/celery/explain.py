"""Why did my task not run? What a call would do now, and what is known of its lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_latch.report import Report

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a call of a task meets now.

    Parameters:
        task: the task's name.
        sending: what would happen when the call is sent now.
        running: what would happen at its run, if it began now.
        report: what is known of its lock.
    """

    task: str
    sending: str
    running: str
    report: Report

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values; never a token."""
        more = self.report.as_dict()
        return {"task": self.task, "sending": self.sending, "running": self.running, **more}

    def lines(self) -> list[str]:
        """The same for people, on lines that are safe for a terminal."""
        return [
            f"task: {self.task}",
            f"a call now: {self.sending}",
            f"a run now: {self.running}",
            *self.report.lines(),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())


#: What a policy does, in words.
_WORDS = {
    "skip": "is skipped: the lock is taken",
    "raise": "fails with LatchBusy: the lock is taken",
    "retry": "is sent again, for later: the lock is taken",
    "wait": "waits in the queue: the lock is taken",
    "rerun": "leaves its arguments to the next run: the lock is taken",
}


def explain(name: str, flight: SingleFlight, report: Report) -> Explanation:
    """Say what a call meets.

    Parameters:
        name: the task's name.
        flight: its options.
        report: what is known of the call's lock.
    """
    lock = report.lock
    limit = min(flight.limit, lock.limit) if lock else flight.limit
    free = lock is None or (len(lock.holders) < limit and not lock.waiters)
    sending = running = "goes on: the lock is free"
    if not free:
        sending, running = (
            _WORDS[flight.policies.get(side, "skip")] for side in ("enqueue", "run")
        )
    if "enqueue" not in flight.policies:
        sending = "is sent: this task takes its lock when it runs"
    if "run" not in flight.policies:
        running = "goes on: this task holds its lock only while it is queued"
    return Explanation(task=name, sending=sending, running=running, report=report)
