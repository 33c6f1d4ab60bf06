"""The compute in a Celery worker: the election is taken over from the process that has sent it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django_latch.core import replies, snapshot, verbs
from django_latch.core.flow import Flow, Grant, twice
from django_latch.core.timing import deadline
from django_latch.core.tokens import check_token, new_token
from django_latch.exceptions import LatchError
from django_latch.heartbeat import heartbeat
from django_latch.snapshots.compute import Computing, describe
from django_latch.snapshots.decorated import found
from django_latch.snapshots.place import Place
from django_latch.snapshots.refresh import QUEUED, Refresh
from django_latch.store import drive
from django_latch.store.connections import store

logger = logging.getLogger("django_latch")


def refresh(
    *,
    path: str,
    args: list[Any],
    kwargs: dict[str, Any],
    name: str,
    label: str,
    using: str | None,
    token: str,
    fence: int,
) -> None:
    """Make the compute that a message asks for.

    Parameters:
        path: of the decorated function, ``module:name``.
        args, kwargs: what it was called with.
        name, label: of the snapshot in the store, and as given; the tenant may be another here.
        using: the alias of its store.
        token, fence: of the election. A copy of the message has one that has been taken over.

    Raises:
        Whatever the compute raises: it is remembered in the store, too.
    """
    try:
        function = found(path)
        compute = function.computing(*args, **kwargs)
        here = function.of(*args, **kwargs).place()
    except Exception as error:  # such as a function that only another version of the code has
        refused = snapshot.fail(name, describe(error), check_token(token), fence)
        at = store(using)
        try:
            drive.sync(twice(refused), at)
        except LatchError:
            heartbeat.owe(at, refused, QUEUED)
        raise
    place = replace(here, label=label, wanted=replace(here.wanted, name=name))
    steps = _refreshing(place, compute, check_token(token), fence)
    if function.is_async:
        asyncio.run(_run(steps, place))
    else:
        drive.sync(steps, place.store)


async def _run(steps: Flow[None], place: Place) -> None:
    await drive.run(steps, place.store.twin())


def _refreshing(place: Place, compute: Callable[[], Any], old: str, fence: int) -> Flow[None]:
    wanted, token = place.wanted, new_token()
    call = verbs.adopt(wanted.name, old, token, wanted.ttl, place.owner, remember=wanted.max_hold)
    reply, sent = yield from twice(call)
    if isinstance(reply, replies.Ended):
        # A copy of the message; or it came so late that another caller was elected.
        logger.info("%r is not computed for fence %s: %s", wanted.name, fence, reply.reason)
        return
    grant = Grant(token, reply.fence, deadline(sent, reply.left), 0.0)
    yield from Computing(place, compute, Refresh(place.store, wanted, grant)).run("miss")
