"""Release: with the token, or by force."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from django_latch import ainventory, signals
from django_latch.api import bodies, overlong
from django_latch.api.asking import send
from django_latch.api.endpoint import Asked, needs
from django_latch.api.problems import Problem, invalid
from django_latch.api.refusals import refusal
from django_latch.conf import conf
from django_latch.core import verbs
from django_latch.core.owner import clean
from django_latch.core.tokens import fingerprint
from django_latch.exceptions import LatchNotHeld
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.store.connections import store

logger = logging.getLogger("django_latch")

#: Carries the token of a DELETE: a URL would be logged.
TOKEN_HEADER: Final = "Latch-Token"  # noqa: S105  a name


@needs("write")
async def release_by_header(asked: Asked) -> dict[str, Any]:
    """DELETE with the token in a header."""
    token = asked.request.headers.get(TOKEN_HEADER)
    if not token:
        raise invalid("invalid_request", {TOKEN_HEADER: "this header is needed"})
    return await _release(asked, token)


@needs("write")
async def release(asked: Asked) -> dict[str, Any]:
    """POST with the token, or with a reason to release by force."""
    body = bodies.fields(asked.request, bodies.RELEASE_FIELDS)
    if body.get("force"):
        return await _by_force(asked, body)
    if "token" not in body:
        raise invalid("invalid_request", {"/token": "is needed"})
    return await _release(asked, body["token"])


async def _release(asked: Asked, token: str) -> dict[str, Any]:
    at, key = store(), asked.key
    twin = at.twin()
    stored = asked.account.stored(key, token)
    # Clients and proxies send again, so the end of a known token is remembered for all of GRACE.
    call = verbs.end(key, stored, "released", known=True)
    try:
        # In one pipeline, in this order: the record as it was, its end, the account's count.
        listing, closed, _ = await asyncio.gather(
            send(verbs.read(key), twin),
            send(call, twin),
            send(asked.account.holds(key, stored, 0, 0), twin),
        )
    except BaseException:
        # Without an answer, or without the client: the lock is released all the same.
        heartbeats.owe(at, call, conf.grace)
        raise
    if closed.reason != "released":
        raise await refusal(twin, key, closed)
    if closed.offered:
        heartbeats.nudge(at, key, closed.offered)
    held_for = closed.held_for / 1000
    mine = next((holder for holder in listing.holders if holder.token == stored), None)
    if mine is not None and mine.state == "held":  # not a second release
        mark = fingerprint(stored)
        signals.send(
            signals.lock_released, name=key, fence=mine.fence, fingerprint=mark, held_for=held_for
        )
    answer = {"key": key, "released": True, "held_for": held_for}
    advice = overlong.note(key, mine, held_for)
    return answer | ({"advice": advice} if advice else {})


async def _by_force(asked: Asked, body: dict[str, Any]) -> dict[str, Any]:
    """Free the lock from its holders, or from the one with this fence."""
    asked.account.require("force", asked.key)
    if "reason" not in body:
        raise invalid("invalid_request", {"/reason": "is needed to release by force"})
    lock = await ainventory.aget(asked.key)
    meant = [
        holder
        for holder in (lock.holders if lock else ())
        if body.get("fence") in (None, holder.fence)
    ]
    if not meant:
        raise Problem("not_found", f"{asked.key!r} is not held, or not with this fence.")
    freed = []
    for holder in meant:
        try:
            await ainventory.aclear(
                asked.key,
                fence=holder.fence,
                fingerprint=holder.fingerprint,
                reason=body["reason"],
                actor=asked.account.name,
            )
        except LatchNotHeld:  # that lease has ended by itself; the others are freed all the same
            continue
        freed.append(holder)
        logger.warning(
            "%r was taken from %s (fence %d) by the account %r: %s",
            asked.key,
            holder.owner.describe(),
            holder.fence,
            asked.account.name,
            clean(body["reason"]),
        )
    if not freed:
        raise Problem("not_found", f"{asked.key!r} is not held, or not with this fence, any more.")
    held_for = max(round(holder.held_for, 3) for holder in freed)
    return {"key": asked.key, "released": True, "held_for": held_for}
