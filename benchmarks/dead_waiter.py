"""The first of two waiters is killed, the holder releases, and the second should not wait long."""

from __future__ import annotations

import random
import time
from statistics import median

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table, middle, spread
from benchmarks.peers import OURS, PEERS, acquire, ping, release

TTL = 30
ROUNDS = 12

#: Seconds between the waiters, and before the release; by chance, because some poll.
PAUSE = 0.05, 0.15

PING = "cold PING"


def measure(effort: float) -> Table:
    """Each round: one dead waiter with each lock, and one PING on an idle connection."""
    seconds: dict[str, list[float]] = {PING: [], **{peer: [] for peer in PEERS}}
    with actors(2) as (holder, second):
        for actor in (holder, second):
            actor.ask(ping)
        names = list(seconds)
        for turn in range(max(int(ROUNDS * effort), 4)):
            for position in range(len(names)):
                peer = names[(turn + position) % len(names)]
                seconds[peer].append(_once(peer, f"bench:dead:{turn}", holder, second))
    return Table(
        f"the first waiter is killed, then a release: {len(seconds[PING])} rounds",
        ("median", "least - most"),
        [(peer, middle(some), spread(some)) for peer, some in seconds.items()],
        [Goal("until the second holds", median(seconds[OURS]) * 1000, 300, "ms")],
        raw=seconds[PING],
    )


def _once(peer: str, name: str, holder: Actor, second: Actor) -> float:
    if peer == PING:
        time.sleep(random.uniform(*PAUSE))
        return holder.ask(ping)
    while True:
        holder.ask(acquire, peer, name, TTL)
        first = Actor()
        first.tell(acquire, peer, name, TTL)
        time.sleep(random.uniform(*PAUSE))
        second.tell(acquire, peer, name, TTL)
        time.sleep(random.uniform(*PAUSE))
        first.kill()
        released = holder.ask(release, name)
        began, held = second.answer()
        second.ask(release, name)
        if began < released - PAUSE[0] / 2:  # else it was too slow to be waiting by then
            return float(held - released)
