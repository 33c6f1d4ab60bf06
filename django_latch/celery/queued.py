"""Locks that no process looks after: they travel in a message until a run takes them over."""

from __future__ import annotations

import logging
from functools import lru_cache, partial

from django_latch import signals
from django_latch.conf import conf
from django_latch.core import flow, verbs
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchError, LatchNotAcquired
from django_latch.heartbeat import heartbeat
from django_latch.lease import Lease
from django_latch.locks import Latch, settle
from django_latch.store import drive
from django_latch.store.base import Store
from django_latch.store.connections import store

logger = logging.getLogger("django_latch")


def waits(owner: Owner) -> bool:
    """Whether a holder is no run but a job in its queue, by its record."""
    # A run that has detached its lease has no process any more, but still its worker.
    return bool(owner.task_id) and not (owner.pid or owner.worker)


def take(name: str, token: str, seconds: float, limit: int, record: str) -> None:
    """Take a lock that is to wait in a queue.

    Parameters:
        name: the lock's name in the store.
        token: its secret.
        seconds: how long it may wait; the setting MAX_TTL holds here too.
        limit: as the option.
        record: whose it is, and that no process has it.

    Raises:
        LatchNotAcquired, LatchUnavailable: it is held, or there is no answer.
    """
    at, ask = store(), _ask(name, seconds, limit, record)
    drive.sync(_taking(ask, token, at), at)


def _taking(ask: verbs.Ask, token: str, at: Store) -> flow.Flow[None]:
    # Without a lease: nobody here looks after it.
    owe = partial(heartbeat.owe, at, seconds=max(ask.grace, ask.ttl))
    try:
        grant = yield from flow.acquire(ask, verbs.Caller(token, own=True), owe)
    except LatchNotAcquired as refusal:
        signals.contended(ask.name, refusal)
        raise
    signals.acquired(ask.name, grant, ask.ttl)
    if grant.stale:
        yield from settle(grant.stale)


def _ask(name: str, seconds: float, limit: int, record: str) -> verbs.Ask:
    ask = _latch(min(seconds, conf.max_ttl), limit).ask_for(name, record)
    # No thread has it, so none that waits for it waits for itself.
    ask.owner, ask.agent = record, ""
    return ask


@lru_cache(maxsize=256)
def _latch(ttl: float, limit: int) -> Latch:
    """A latch on these terms, for any lock."""
    return Latch.exact("queued", ttl=ttl, timeout=0, limit=limit, heartbeat=False)


def hand_over(lease: Lease, seconds: float, limit: int, record: str) -> str:
    """Turn the lease of a run into a lock that waits in a queue; the lease is over.

    Parameters:
        lease: the run's lease.
        seconds, limit, record: as for `take`.

    Returns:
        The secret for the message.

    Raises:
        LatchNotHeld, LatchUnavailable: it could not be handed over; nothing is held any more.
    """
    ask, token = _ask(lease.name, seconds, limit, record), lease.leave()
    try:
        return _latch(ask.ttl, limit).adopt(token, ask=ask).leave()
    except BaseException:
        give_back(lease.name, token)
        raise


def owe(name: str, token: str | None) -> None:
    """End what a token has, if anything, as soon as the store answers again; see `give_back`."""
    if token is not None:
        call = verbs.end(name, token, "abandoned", resent=True)
        heartbeat.owe(store(), call, conf.grace)


def give_back(name: str, token: str | None) -> None:
    """End what a token has, if anything. Never raises: what had no answer is sent again later.

    Parameters:
        name: the lock.
        token: the secret; None: nothing is to be done.
    """
    if token is None:
        return
    at = store()
    call = verbs.end(name, token, "abandoned", resent=True)
    try:
        drive.sync(flow.end(call, partial(heartbeat.owe, at, seconds=conf.grace)), at)
    except LatchError as error:
        logger.warning("could not give back the lock %s: %s", name, error)
