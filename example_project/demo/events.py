"""The lock's own event stream, and what it proves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.core.cache import caches
from django_redis import get_redis_connection

from django_latch.conf import conf

#: Kinds of events that end a lease.
ENDS = {"released", "expired", "cleared", "abandoned"}


@dataclass(frozen=True)
class Event:
    kind: str
    name: str
    fence: int


def read_events() -> list[Event]:
    """All events that the server has kept, oldest first."""
    # One stream for all locks of a project: see "Keys and permissions in Redis" in the docs.
    alias = conf.cache_alias
    stream = f"{caches[alias].key_prefix}:latch:1:{{00}}:events"
    entries = get_redis_connection(alias).xrange(stream)
    facts = [{key.decode(): value.decode() for key, value in entry.items()} for _, entry in entries]
    return [Event(fact["kind"], fact["name"], int(fact["fence"])) for fact in facts]


@dataclass
class Timeline:
    """The leases of one name, in the order in which the server wrote their events."""

    name: str
    steps: list[str] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    most: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        if event.kind == "refused":
            self.refused += 1
            return
        self.steps.append(event.kind)
        if event.kind == "acquired":
            self.running.append(event.fence)
            self.most = max(self.most, len(self.running))
        elif event.kind not in ENDS:
            self.faults.append(f"{self.name}: unexpected event {event.kind}")
        elif event.fence in self.running:
            self.running.remove(event.fence)
        else:
            self.faults.append(f"{self.name}: {event.kind} of fence {event.fence}, not running")


def timelines(events: Iterable[Event], names: list[str]) -> dict[str, Timeline]:
    """The timeline of each of `names`; events of other locks are left out."""
    found = {name: Timeline(name) for name in names}
    for event in events:
        if event.name in found:
            found[event.name].add(event)
    return found
