"""What can be read of the model. Nothing here changes anything."""

from __future__ import annotations

from typing import Any

from django_latch.core.model_turn import Turn
from django_latch.core.owner import Owner
from django_latch.core.replies import Holder, Listing, Waiter, Waiters


class Looks(Turn):
    """Reading one lock, or the lists of the bucket."""

    def queue(self, most: int) -> Waiters:
        """Read who waits, the next one first; changes nothing."""
        places = [
            self.place(t) for t in self.lock.line()[:most] if self.now <= self.lock.alive.get(t, 0)
        ]
        waiters = (Waiter(p.ticket, Owner.from_json(p.owner)) for p in places if p)
        return Waiters(self.now, tuple(waiters))

    def list(self) -> Listing:
        """Read a lock; changes nothing."""
        holders = tuple(
            Holder(
                h.token,
                h.state,
                h.fence,
                h.exp,
                h.lease,
                h.limit,
                h.since,
                Owner.from_json(h.owner),
            )
            for h in self.lock.holders
            if self.live(h)
        )
        return Listing(self.now, len(self.lock.queue), holders)

    def look(self, what: str, first: int, last: int) -> Any:
        """See look.lua; here a scan tells everything at once."""
        names = [name for _, name in sorted((at, name) for name, at in self.bucket.index.items())]
        due = [name for _, name in sorted((at, name) for name, at in self.bucket.due.items())]
        run = self.lock.next
        match what:
            case "count":
                return len(names)
            case "names":
                return part(names, first, last)
            case "reversed":
                return part(names[::-1], first, last)
            case "due":
                return part(due, first, last)
            case "snapshots":
                kept = sorted((s.listed, name) for name, s in self.bucket.snapshots.items())
                names = [name for at, name in kept if at > self.now]
                return names[first : first + last]
            case "next":
                return (run.job, run.until) if run.job and self.now <= run.ends else None
            case "known":
                return int(bool(self.lock.records or self.lock.tombs))
            case "scan":
                return 0, names
            case "events":
                return [event.as_dict() for event in list(self.bucket.events)[::-1][:last]]
        raise ValueError(what)


def part(names: list[str], first: int, last: int) -> list[str]:
    """From one place to another, the last one included; -1 is the last of all."""
    return names[first:] if last == -1 else names[first : last + 1]
