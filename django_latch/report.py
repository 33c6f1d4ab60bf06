"""All that is known of one lock: for the question why a job did not run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django_latch import inventory
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import moment, unavailable
from django_latch.core.owner import Owner, clean
from django_latch.inventory import LockInfo
from django_latch.store.base import Store
from django_latch.store.connections import store

#: Events of all locks that are looked through, the latest first; and those of this lock shown.
LOOKED_THROUGH: Final = 2000
SHOWN: Final = 10

#: Facts of an event that are durations, in milliseconds in the store.
DURATIONS: Final = ("held", "waited")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a lock.

    Parameters:
        kind: acquired, released, refused, expired and so on.
        at: when, by the server's clock.
        fence: of the lease; 0 where there was none.
        owner: whose lease or call it was.
        more: further facts, such as the reason of a refusal; durations are seconds.
    """

    kind: str
    at: datetime
    fence: int
    owner: Owner
    more: dict[str, str | float]

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values."""
        return {
            "kind": self.kind,
            "at": self.at.isoformat(),
            "fence": self.fence,
            "owner": self.owner.as_dict(),
            **self.more,
        }

    def describe(self) -> str:
        """One line for people."""
        more = "".join(
            f", {name} {value:.1f} s" if isinstance(value, float) else f", {name} {value}"
            for name, value in self.more.items()
        )
        job = f", job {self.owner.task_id}" if self.owner.task_id else ""
        when = self.at.strftime("%Y-%m-%d %H:%M:%S")
        return clean(f"{when} {self.kind}: {self.owner.describe()}{job}{more}", 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The one run that calls have asked for during the present one.

    Parameters:
        task_id: the job whose message carries it.
        due: when it is sent again, should its carrier not have shown itself.
    """

    task_id: str
    due: datetime

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values."""
        return {"task_id": self.task_id, "due": self.due.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known of one lock.

    Parameters:
        name: the lock.
        lock: who holds it and how many wait; None where it is free.
        next_run: see `NextRun`.
        events: of this lock, the latest first. What is recorded depends on the setting EVENTS.
    """

    name: str
    lock: LockInfo | None
    next_run: NextRun | None
    events: tuple[Event, ...]

    @property
    def last_finished(self) -> Event | None:
        """The latest release; None where none is recorded."""
        return next((event for event in self.events if event.kind == "released"), None)

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe values; never a token."""
        return {
            "name": self.name,
            "lock": self.lock and self.lock.as_dict(),
            "next_run": self.next_run and self.next_run.as_dict(),
            "last_finished": self.last_finished and self.last_finished.as_dict(),
            "events": [event.as_dict() for event in self.events],
        }

    def lines(self) -> list[str]:
        """The same for people, on lines that are safe for a terminal."""
        said = [f"lock: {clean(self.name)}"]
        if self.lock is None:
            said.append("held by: nobody")
        for holder in self.lock.holders if self.lock else ():
            job = f", job {holder.owner.task_id}" if holder.owner.task_id else ""
            said.append(
                f"{holder.state}: {holder.owner.describe()}{clean(job)}, "
                f"for {holder.held_for:.1f} s, {holder.expires_in:.1f} s left, "
                f"fence {holder.fence}"
            )
        said.append(f"waiting: {self.lock.waiters if self.lock else 0}")
        if self.next_run is not None:
            said.append(f"next run: carried by job {clean(self.next_run.task_id)}")
        last = self.last_finished
        said.append(f"last finished: {last.describe() if last else 'not recorded'}")
        said += [f"event: {event.describe()}" for event in self.events[:SHOWN]]
        return said

    def __str__(self) -> str:
        return "\n".join(self.lines())


def report(name: str, *, using: str | None = None) -> Report:
    """What is known of a lock. Three round trips; nothing is written.

    Parameters:
        name: the lock's name in the store.
        using: the cache alias. Default: the CACHE_ALIAS setting.

    Raises:
        LatchUnavailable, LatchCorrupt: the store gave no usable answer.
    """
    at = store(using)
    lock = inventory.get(name, using=using)
    try:
        return Report(name=name, lock=lock, next_run=_next_run(at, name), events=_events(at, name))
    except StoreError as error:
        raise unavailable(name, error) from error


def _next_run(at: Store, name: str) -> NextRun | None:
    carried = at.call(verbs.next_run(name))
    if carried is None:
        return None
    job, until = carried
    return NextRun(task_id=job.rsplit(":", 2)[0], due=moment(until))


def _events(at: Store, name: str) -> tuple[Event, ...]:
    found = at.call(verbs.events(LOOKED_THROUGH))
    return tuple(_event(facts) for facts in found if facts.get("name") == name)


def _event(facts: dict[str, str]) -> Event:
    taken = {"kind", "name", "at", "fence", "owner"}
    at = facts.get("at", "")
    return Event(
        kind=clean(facts.get("kind", "?"), 40),
        at=moment(int(at)) if at.isdigit() else datetime.fromtimestamp(0, UTC),
        fence=int(fence) if (fence := facts.get("fence", "")).isdigit() else 0,
        owner=Owner.from_json(facts.get("owner") or "{}"),
        more={clean(k, 40): _fact(k, v) for k, v in facts.items() if k not in taken and v},
    )


def _fact(name: str, value: str) -> str | float:
    return int(value) / 1000 if name in DURATIONS and value.isdecimal() else clean(value)
