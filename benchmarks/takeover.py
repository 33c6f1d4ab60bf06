"""The holder is killed; a waiter takes over when its lease has passed."""

from __future__ import annotations

import time
from itertools import count
from statistics import median

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table, middle, spread
from benchmarks.peers import OURS, PEERS, acquire, ping, release

#: The shortest lease that all of them can have, in seconds.
TTL = 1
ROUNDS = 6

SLEEP = "a sleep of the same length"

_numbers = count()


def measure(effort: float) -> Table:
    """Each round: one takeover with each lock, at the same time, and one sleep."""
    late: dict[str, list[float]] = {SLEEP: [], **{peer: [] for peer in PEERS}}
    with actors(len(PEERS) + 1) as (sleeper, *waiting):
        waiters = dict(zip(PEERS, waiting, strict=True))
        for waiter in waiting:
            waiter.ask(ping)
        for _ in range(max(int(ROUNDS * effort), 4)):
            left = {peer: _killed(peer) for peer in PEERS}
            for peer, waiter in waiters.items():
                waiter.tell(acquire, peer, left[peer][0], TTL)
            late[SLEEP].append(sleeper.ask(sleep))
            for peer, waiter in waiters.items():
                name, end = left[peer]
                late[peer].append(waiter.answer()[1] - end)
                waiter.ask(release, name)
    return Table(
        f"takeover of a killed holder, late by: {len(late[SLEEP])} rounds",
        ("median", "least - most"),
        [(peer, middle(seconds), spread(seconds)) for peer, seconds in late.items()],
        [Goal("takeover late by", median(late[OURS]) * 1000, 25, "ms")],
        # Not how late a sleep ends, which is next to nothing, but how much that is of a takeover.
        raw=[0.01 + seconds for seconds in late[SLEEP]],
    )


def sleep() -> float:
    """How late a sleep ends: what a timer costs without any lock."""
    end = time.monotonic() + TTL
    time.sleep(TTL)
    return time.monotonic() - end


def _killed(peer: str) -> tuple[str, float]:
    """Have a process take a lock and kill it; the lock, and the earliest that its lease can end."""
    while True:
        holder, name = Actor(), f"bench:takeover:{next(_numbers)}"
        holder.ask(acquire, peer, f"{name}:first", TTL)  # connections, script caches
        holder.ask(release, f"{name}:first")
        began, _ = holder.ask(acquire, peer, name, TTL)
        holder.kill()
        if time.monotonic() < began + TTL / 4:  # else it may have been renewed
            return name, began + TTL
