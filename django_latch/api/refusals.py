"""Why a token holds nothing, and what else is known about a refusal."""

from __future__ import annotations

from typing import Final

from django_latch import ainventory
from django_latch.api.asking import send
from django_latch.api.problems import Problem, not_holder
from django_latch.core import replies, verbs
from django_latch.exceptions import LatchError
from django_latch.store.base import AsyncStore

#: What the engine says of a token that it does not know.
UNKNOWN: Final = ("missing", "taken", "never_held")


Ending = replies.Ended | replies.Closed


async def refusal(twin: AsyncStore, key: str, ended: replies.Ended | replies.Closed) -> Problem:
    """Why the token has no lease of this lock: `taken`, `expired`, `never_held`, or how it ended.

    A key that is free and of which nothing is remembered is `not_found`.
    """
    if ended.reason in UNKNOWN and not ended.fence:
        if not await send(verbs.known(key), twin):
            return Problem("not_found", f"{key!r} is free, and nothing is remembered of it.")
        return not_holder(key, "never_held")
    if ended.reason == "expired":
        listing = await send(verbs.read(key), twin)
        return _expired(key, "taken" if listing.holders else "expired", ended)
    return not_holder(key, ended.reason)


def _expired(key: str, reason: str, ended: Ending) -> Problem:
    problem = not_holder(key, reason)
    if isinstance(ended, replies.Closed) and ended.held_for:
        least = ended.held_for / 1000
        problem.facts["advice"] = (
            f"The work outlived its ttl of {least:g} s. Renew every third of it, or ask for a "
            f"ttl of more than twice the time the work takes, at least {2 * least:g} s."
        )
    return problem


async def enrich(problem: Problem, key: str) -> Problem:
    """Add how many wait, and whether the holder's process may be alive."""
    try:
        lock = await ainventory.aget(key)
    except LatchError:
        return problem  # the refusal stands without
    problem.facts["waiters"] = lock.waiters if lock else 0
    if lock and lock.holders:
        problem.facts["holder_alive"] = not lock.holders[0].owner.provably_dead()
    return problem
