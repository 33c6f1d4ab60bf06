"""What the scenario saw, whether that is right, and the summary of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from example_project.demo.events import Timeline

# The killed job's lock ends by the server's clock; this much is allowed for looking at it.
LOOKING = 0.5


class UnexpectedError(Exception):
    """The scenario cannot go on."""


@dataclass
class Findings:
    """Times in seconds."""

    sent: int = 0
    ran: int = 0
    skipped: int = 0
    ran_beside: bool = False
    renewals: int = 0
    held_for: float = 0.0
    ttl: float = 0.0
    freed_after: float = 0.0
    ran_again: bool = False
    timelines: dict[str, Timeline] = field(default_factory=dict)

    def summary(self) -> list[tuple[str, str]]:
        """What was seen, as label and text."""
        most = ", ".join(f"{line.most} for {name}" for name, line in self.timelines.items())
        ttl = f"TTL {self.ttl:g} s"
        return [
            ("second key", "ran beside the first" if self.ran_beside else "did NOT run beside it"),
            ("renewals seen", f"{self.renewals}; held for {self.held_for:.1f} s ({ttl})"),
            ("most runs at once", f"{most} (by the event stream)"),
            ("killed child", f"lock free after {self.freed_after:.2f} s ({ttl})"),
            ("after the crash", "the job ran again" if self.ran_again else "NO new run"),
        ]

    def problems(self, calls: int, renewals: int, runs: dict[str, int]) -> Iterator[str]:
        """What is not as it must be: `calls` sent, `renewals` seen, `runs` of each key."""
        if (self.sent, self.ran, self.skipped) != (calls, 1, calls - 1):
            yield f"of {calls} calls one must run and all others be skipped"
        if not self.ran_beside:
            yield "a job with another key must run beside the first"
        if self.renewals < renewals or self.held_for <= self.ttl:
            yield "the lock must be renewed while its job runs, for longer than its TTL"
        if not 0 < self.freed_after <= self.ttl + LOOKING:
            yield "a killed job's lock must be free within its TTL"
        if not self.ran_again:
            yield "the job must run again after the crash"
        for name, count in runs.items():
            yield from self._problems_of(self.timelines[name], count)

    def _problems_of(self, line: Timeline, runs: int) -> Iterator[str]:
        yield from line.faults
        began = line.steps.count("acquired")
        if began != runs:
            yield f"{line.name}: {runs} leases expected, {began} began"
        if line.most != 1:
            yield f"{line.name}: at most one lease at a time, not {line.most}"
        if line.running:
            yield f"{line.name}: leases without an end in the event stream: {line.running}"
