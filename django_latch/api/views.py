"""Reading: a lock, its queue, the list of locks, and the description of the API."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from django_latch import ainventory
from django_latch.api.endpoint import Asked, needs
from django_latch.api.problems import invalid
from django_latch.inventory import HolderInfo, LockInfo

#: Locks in one page, about; places of a queue that are told.
PAGE: Final = 100
PLACES: Final = 1000


@needs("read")
async def inspect(asked: Asked) -> dict[str, Any]:
    """Who holds a lock, and for how long."""
    lock = await ainventory.aget(asked.key)
    return _lock(lock or LockInfo(name=asked.key, holders=(), waiters=0))


@needs("read")
async def queue(asked: Asked) -> dict[str, Any]:
    """Who waits for a lock, the next one first."""
    places = await ainventory.aqueue(asked.key, PLACES)
    return {
        "key": asked.key,
        "queue": [
            {
                "position": place.position,
                "owner": place.owner.describe(),
                "since": place.since.isoformat(),
                "waited": round(place.waited, 3),
            }
            for place in places
        ],
    }


@needs("read")
async def page(asked: Asked) -> dict[str, Any]:
    """The locks in scope, a page at a time."""
    given = asked.request.GET
    unknown = {name[:80]: "is no parameter" for name in given if name not in ("prefix", "cursor")}
    cursor = given.get("cursor") or "0"
    if not (cursor.isascii() and cursor.isdecimal() and int(cursor) < 2**64):
        unknown["cursor"] = "must be the cursor of an earlier page"
    if unknown:
        raise invalid("invalid_request", unknown)
    prefix = given.get("prefix", "")

    def wanted(name: str) -> bool:
        return name.startswith(prefix) and asked.account.covers(name)

    locks, more = await ainventory.apage(int(cursor), wanted, PAGE)
    return {
        "locks": [_lock(lock) for lock in locks],
        "cursor": str(more) if more else None,
    }


@needs("read")
async def document(asked: Asked) -> dict[str, Any]:
    """The OpenAPI document."""
    return openapi()


@cache
def openapi() -> dict[str, Any]:
    """`openapi.json`, read once."""
    text = (files("django_latch.api") / "openapi.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def _lock(lock: LockInfo) -> dict[str, Any]:
    first = lock.holder
    return {
        "key": lock.name,
        "locked": first is not None,
        "ttl_remaining": first and round(first.expires_in, 3),
        "fence": first and first.fence,
        "owner": first and first.owner.describe(),
        "acquired_at": first and first.acquired_at.isoformat(),
        "waiters": lock.waiters,
        "limit": lock.limit,
        "holders": [_holder(holder) for holder in lock.holders],
    }


def _holder(holder: HolderInfo) -> dict[str, Any]:
    return {
        "state": holder.state,
        "fence": holder.fence,
        "fingerprint": holder.fingerprint,
        "owner": holder.owner.describe(),
        "meta": dict(holder.owner.meta) if holder.owner.meta else None,
        "acquired_at": holder.acquired_at.isoformat(),
        "held_for": round(holder.held_for, 3),
        "ttl": holder.ttl,
        "ttl_remaining": round(holder.expires_in, 3),
    }
