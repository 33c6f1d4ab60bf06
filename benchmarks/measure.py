"""Interleaved timing: the peers take turns, so that a machine that slows down slows all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles

Operation = Callable[[], object]


@dataclass(frozen=True)
class Result:
    """What one peer took: seconds per operation in each round, and its ratios to the baseline."""

    seconds: list[float]
    ratios: list[float]

    @property
    def ratio(self) -> float:
        """The middle one of the rounds' ratios: a disturbed round moves it little."""
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles of the rounds' ratios."""
        first, _, third = quantiles(self.ratios, n=4)
        return first, third


def run(
    peers: Mapping[str, Operation], baseline: str, *, rounds: int, calls: int
) -> dict[str, Result]:
    """Time every peer `rounds` times, `calls` operations each, in turns: A B C, B C A, C A B ..."""
    names = list(peers)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        _time(peers[name], max(calls // 4, 1))  # connections, script caches, imports
    for turn in range(rounds):
        for position in range(len(names)):
            name = names[(turn + position) % len(names)]
            seconds[name].append(_time(peers[name], calls))
    base = seconds[baseline]
    return {
        name: Result(mine, [one / other for one, other in zip(mine, base, strict=True)])
        for name, mine in seconds.items()
    }


def _time(operation: Operation, calls: int) -> float:
    gc.collect()
    started = time.perf_counter()
    for _ in range(calls):
        operation()
    return (time.perf_counter() - started) / calls
