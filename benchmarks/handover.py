"""A holder releases, and the process that waits in the queue goes on."""

from __future__ import annotations

import random
import time
from statistics import median

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table, middle, spread
from benchmarks.peers import OURS, PEERS, acquire, ping, release

TTL = 30
ROUNDS = 30

#: Seconds for which everything is still before a release; by chance, because some poll.
PAUSE = 0.05, 0.15

PING = "cold PING"


def measure(effort: float) -> Table:
    """Each round: one hand-over with each lock, and one PING on an idle connection."""
    seconds: dict[str, list[float]] = {PING: [], **{peer: [] for peer in PEERS}}
    with actors(2) as (holder, waiter):
        for actor in (holder, waiter):
            actor.ask(ping)
        names = list(seconds)
        for turn in range(max(int(ROUNDS * effort), 4)):
            for position in range(len(names)):
                peer = names[(turn + position) % len(names)]
                seconds[peer].append(_once(peer, f"bench:handover:{turn}", holder, waiter))
    raw = median(seconds[PING])
    return Table(
        f"hand-over to a waiting process: {len(seconds[PING])} rounds",
        ("median", "of cold PING", "least - most"),
        [(p, middle(s), f"{median(s) / raw:.2f}", spread(s)) for p, s in seconds.items()],
        [Goal(f"hand-over / {PING}", median(seconds[OURS]) / raw, 2.0)],
        raw=seconds[PING],
    )


def _once(peer: str, name: str, holder: Actor, waiter: Actor) -> float:
    pause = random.uniform(*PAUSE)
    if peer == PING:
        time.sleep(pause)
        return holder.ask(ping)
    while True:
        holder.ask(acquire, peer, name, TTL)
        waiter.tell(acquire, peer, name, TTL)
        time.sleep(pause)
        released = holder.ask(release, name)
        began, held = waiter.answer()
        waiter.ask(release, name)
        if began < released - PAUSE[0] / 2:  # else it was too slow to be waiting by then
            return float(held - released)
