"""What an acquire asks the engine for, and how calls are sent."""

from __future__ import annotations

from typing import Any, TypeVar

from django_latch.api.accounts import Account
from django_latch.conf import Settings
from django_latch.core import flow
from django_latch.core.calls import Call
from django_latch.core.owner import Owner
from django_latch.core.verbs import Ask
from django_latch.store import drive
from django_latch.store.base import AsyncStore

T = TypeVar("T")


def ask_of(account: Account, key: str, body: dict[str, Any], settings: Settings) -> Ask:
    """The ask of a checked body.

    The owner is a name only: no process of ours stands behind a holder, so nothing may be
    concluded from the end of one. With DEADLOCKS, a client that names itself can be found in a
    circle; its `owner` must then be its own.
    """
    label = body.get("owner", "")
    who = f"{account.name}/{label}" if label else account.name
    agent = f"http/{who}" if settings.deadlocks and label else ""
    return Ask(
        name=key,
        ttl=body.get("ttl", settings.ttl),
        owner=Owner(label=who, agent=agent, meta=body.get("meta")).to_json(),
        timeout=min(body.get("timeout", settings.timeout), settings.http.max_wait),
        limit=body.get("limit", 1),
        slice=settings.slice,
        claim=settings.claim,
        max_waiters=settings.max_waiters,
        max_timeout=settings.max_timeout,
        live=settings.live,
        agent=agent,
    )


async def send(call: Call[T], twin: AsyncStore) -> T:
    """Send a call, at most twice.

    Raises:
        LatchUnavailable: no usable answer.
    """
    answer, _ = await drive.run(flow.twice(call), twin)
    return answer
