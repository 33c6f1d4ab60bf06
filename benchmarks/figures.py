"""What a scenario found: a table to print, and goals that it meets or misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

#: Third quartile of the raw rounds over the first, from which a machine counts as busy.
BUSY = 1.5

#: The share by which a goal may be missed before the command fails: machines and moments differ.
MARGIN = 0.5


@dataclass(frozen=True)
class Goal:
    """One figure of ours and what it should be.

    `limit` is the goal; `least` turns it round: the value should not be below.
    """

    what: str
    value: float
    limit: float
    unit: str = ""
    least: bool = False

    @property
    def missed(self) -> bool:
        """Whether it is missed by more than the margin."""
        if self.least:
            return self.value < self.limit * (1 - MARGIN)
        return self.value > self.limit * (1 + MARGIN)

    def __str__(self) -> str:
        reached = self.value >= self.limit if self.least else self.value <= self.limit
        verdict = "MISSED" if self.missed else "reached" if reached else "near"
        bound = "at least" if self.least else "at most"
        unit = f" {self.unit}" if self.unit else ""
        return f"{verdict}: {self.what} {self.value:.2f}{unit}; goal {bound} {self.limit:g}{unit}"


@dataclass(frozen=True)
class Table:
    """What a scenario prints. `raw` are its rounds of what no lock can change, all alike."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    goals: Sequence[Goal]
    raw: Sequence[float]

    @property
    def scatter(self) -> float:
        """The third quartile of the raw rounds over the first: near 1 on a quiet machine."""
        first, _, third = quantiles(self.raw, n=4)
        return third / first

    @property
    def busy(self) -> bool:
        """Whether something else ran on the machine, so that a missed goal says nothing."""
        return self.scatter > BUSY

    @property
    def missed(self) -> bool:
        """Whether a goal is missed by more than its margin."""
        return any(goal.missed for goal in self.goals)

    def __str__(self) -> str:
        grid = [("", *self.columns), *self.rows]
        wide = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines = [
            "   ".join([f"{first:<{wide[0]}}", *map(str.rjust, rest, wide[1:])])
            for first, *rest in grid
        ]
        return "\n  ".join([self.title, *lines, *map(str, self.goals)])


def ms(seconds: float) -> str:
    """Seconds as text in milliseconds."""
    return f"{seconds * 1e3:.{2 if seconds < 0.01 else 0}f} ms"


def spread(values: Sequence[float]) -> str:
    """The least and the greatest of some seconds."""
    return f"{ms(min(values))} - {ms(max(values))}"


def middle(values: Sequence[float]) -> str:
    """The median of some seconds."""
    return ms(median(values))
