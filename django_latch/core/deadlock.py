"""The advisory search for deadlocks: does the holder I wait for wait, in the end, for me?

Waiters walk from the lock they wait for to its holder, to the lock that one waits for, and so
on. What they read changes under them, so a circle counts only if it is seen again after every
entry of the first look must have been renewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.timing import now

#: Longest chain of holders that is followed.
HOPS: Final = 16


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a circle: `agent` holds `holds` and waits for `waits`."""

    agent: str
    holds: str
    waits: str

    def as_dict(self) -> dict[str, str]:
        """Plain JSON values."""
        return {"agent": self.agent, "holds": self.holds, "waits": self.waits}


class Search:
    """A waiter's own search.

    Parameters:
        name: the lock it waits for.
        agent: who waits: one thread or task.
        live: seconds for which an entry counts.
    """

    def __init__(self, name: str, agent: str, live: float) -> None:
        self._name = name
        self._agent = agent
        self._live = live
        self._seen: tuple[tuple[Link, ...], float] | None = None

    def look(self) -> verbs.Steps[tuple[Link, ...] | None]:
        """Look once. Returns the circle when it is certain and this waiter is to give way."""
        try:
            circle = yield from self._walk()
        except StoreError:  # the wait itself will find out
            return None
        if circle is None or self._seen is None or self._seen[0] != circle:
            self._seen = None if circle is None else (circle, now())
            return None
        # One of them gives way: the one whose name comes last, the same for all that look.
        last = max(link.agent for link in circle)
        if self._agent == last and now() - self._seen[1] > self._live:
            return circle
        return None

    def _walk(self) -> verbs.Steps[tuple[Link, ...] | None]:
        name, links = self._name, list[Link]()
        yield verbs.waits(name, self._agent)
        for _ in range(HOPS):
            listing = yield verbs.read(name)
            # With several holders any of them may be the first to release.
            if len(listing.holders) != 1:
                return None
            other = listing.holders[0].owner.agent
            if other == self._agent:
                links.append(Link(self._agent, name, self._name))
                return tuple(sorted(links, key=lambda link: link.agent))
            waits = (yield verbs.waits(name, other=other)) if other else ""
            if not waits:
                return None
            links.append(Link(other, name, waits))
            name = waits
        return None
