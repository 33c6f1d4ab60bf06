"""Locks held by whom a test likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django_latch import LatchNotHeld, Lease, latch
from django_latch.core.owner import Owner

Hold = Callable[..., Lease]


@contextmanager
def holding() -> Iterator[Hold]:
    """A function that takes a lock as if the process with these facts had done so."""
    leases: list[Lease] = []

    def hold(name: str, *, limit: int = 1, ttl: float = 60, **facts: object) -> Lease:
        owner = Owner.here(**facts)
        asked = latch(name, limit=limit, ttl=ttl, timeout=0, owner=owner, heartbeat=False)
        leases.append(asked.acquire())
        return leases[-1]

    yield hold
    for lease in leases:
        with suppress(LatchNotHeld):  # the test freed it
            lease.release()
