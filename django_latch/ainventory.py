"""The inventory for event loops: the same values, read without blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django_latch.core import flow, verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import moment, unavailable
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchCorrupt
from django_latch.inventory import LockInfo, clearing, lock_info
from django_latch.store import drive
from django_latch.store.connections import store

if TYPE_CHECKING:
    from django_latch.store.base import AsyncStore

#: Names looked at in one step of a listing, and steps in one page.
STEP: Final = 500
STEPS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiterInfo:
    """One place in a queue; `waited` in seconds."""

    position: int
    owner: Owner
    since: datetime
    waited: float


async def aget(name: str, *, using: str | None = None) -> LockInfo | None:
    """One lock; None where it is free and nobody waits. One round trip."""
    listing, _ = await drive.run(flow.twice(verbs.read(name)), store(using).twin())
    return lock_info(name, listing)


async def aqueue(name: str, most: int, *, using: str | None = None) -> list[WaiterInfo]:
    """Who waits for a lock, the next one first, at most `most`. One round trip."""
    queue, _ = await drive.run(flow.twice(verbs.queue(name, most)), store(using).twin())
    return [
        WaiterInfo(
            position=position,
            owner=waiter.owner,
            since=moment(waiter.ticket // 1000),
            waited=max(queue.now - waiter.ticket / 1000, 0) / 1000,
        )
        for position, waiter in enumerate(queue.waiters, 1)
    ]


async def apage(
    cursor: int, wanted: Callable[[str], bool], size: int, *, using: str | None = None
) -> tuple[list[LockInfo], int]:
    """About `size` locks whose names are `wanted`, and where to go on; 0 at the end.

    A lock that is held all the while is seen by whoever follows the cursor from 0 to 0, once or,
    when the index changes its form meanwhile, twice. A page looks at a bounded number of names.
    """
    twin, names = store(using).twin(), list[str]()
    for _ in range(STEPS):
        try:
            cursor, found = await twin.call(verbs.scan(cursor, STEP))
        except StoreError as error:
            raise unavailable("", error) from error
        names += [name for name in found if wanted(name)]
        if not cursor or len(names) >= size:
            break
    outcomes = await asyncio.gather(*(_read(twin, name) for name in dict.fromkeys(names)))
    return [lock for lock in outcomes if lock is not None], cursor


async def _read(twin: AsyncStore, name: str) -> LockInfo | None:
    """One of many; what cannot be read hurts only its own lock."""
    try:
        listing, _ = await drive.run(flow.twice(verbs.read(name)), twin)
    except LatchCorrupt as error:
        return lock_info(name, error)
    return lock_info(name, listing)


async def aclear(
    name: str, *, fence: int, fingerprint: str, reason: str, actor: str, using: str | None = None
) -> None:
    """The async twin of `inventory.clear`."""
    steps = clearing(name, fence, fingerprint, reason, actor)
    await drive.run(steps, store(using).twin())
