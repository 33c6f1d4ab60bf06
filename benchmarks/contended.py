"""Processes take one lock from each other, and none of them does anything with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table, ms
from benchmarks.peers import OURS, PEERS, REDIS_PY, hammer

TTL = 30
PROCESSES = 8
ROUNDS = 4

#: Seconds of one round of one lock.
LONG = 1.0


@dataclass
class Found:
    """What the rounds of one lock gave."""

    rates: list[float] = field(default_factory=list)  # acquisitions per second
    fairness: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)  # waits, in seconds

    def row(self, peer: str, base: Found) -> tuple[str, ...]:
        """Of the table."""
        return (
            peer,
            f"{median(self.rates):.0f}",
            f"{ratio(self, base):.2f}",
            f"{median(self.fairness):.3f}",
            ms(median(self.longest)),
        )


def measure(effort: float) -> Table:
    """Each round: every lock for a second."""
    found = {peer: Found() for peer in PEERS}
    names = list(PEERS)
    rounds = max(int(ROUNDS * effort), 3)
    with actors(PROCESSES) as all_:
        for peer in names:
            _once(peer, all_, LONG / 4)  # connections, script caches
        for turn in range(rounds):
            for position in range(len(names)):
                peer = names[(turn + position) % len(names)]
                counts, longest = _once(peer, all_, LONG)
                found[peer].rates.append(sum(counts) / LONG)
                found[peer].fairness.append(jain(counts))
                found[peer].longest.append(longest)
    ours, base = found[OURS], found[REDIS_PY]
    return Table(
        f"{PROCESSES} processes contend for one lock: {rounds} rounds of {LONG:g} s",
        ("acquired / s", "of redis-py's", "Jain fairness", "longest wait"),
        [one.row(peer, base) for peer, one in found.items()],
        [
            Goal(f"acquisitions / {REDIS_PY}'s", ratio(ours, base), 0.7, least=True),
            Goal("longest wait", median(ours.longest) * 1000, 50, "ms"),
        ],
        raw=base.rates,
    )


def ratio(one: Found, base: Found) -> float:
    """The middle one of the rounds' ratios of acquisitions."""
    return median(a / b for a, b in zip(one.rates, base.rates, strict=True))


def jain(counts: Sequence[int]) -> float:
    """Jain's index of fairness: 1 where all got the same, 1/n where one got everything."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 1.0


def _once(peer: str, all_: Sequence[Actor], seconds: float) -> tuple[list[int], float]:
    start = time.monotonic() + 0.05
    for actor in all_:
        actor.tell(hammer, peer, "bench:contended", TTL, start, start + seconds)
    waits = [actor.answer() for actor in all_]
    return [len(some) for some in waits], max(max(some, default=0.0) for some in waits)
