"""Signals. The sender is the `Latch` class; every payload value is passed by keyword.

`token` is never part of a payload; `fingerprint`, the first 8 hex digits of its SHA-256, is.
Receivers run where the event is noticed (`lock_lost` mostly in the heartbeat thread), and an
error of a receiver is logged, never raised into the lock.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from django_latch.core.tokens import fingerprint

if TYPE_CHECKING:
    from django_latch.core.flow import Grant
    from django_latch.exceptions import LatchNotAcquired

logger = logging.getLogger("django_latch")

#: A lease began. Payload: name, fence, fingerprint, waited (seconds), ttl (seconds).
lock_acquired = Signal()
#: A lease ended by its own release. Payload: name, fence, fingerprint, held_for (seconds).
lock_released = Signal()
#: A lease was lost. Payload: name, fence, fingerprint, reason.
lock_lost = Signal()
#: A call did not get the lock. Payload: name, reason, holder (dict or None), waited (seconds).
lock_contended = Signal()
#: A person or a command freed a lock. Payload: name, fence, fingerprint, actor, reason.
lock_force_released = Signal()
#: A Celery task did not run. Payload: task, key, reason, holder (dict or None), task_id.
task_skipped = Signal()
#: A Celery task was sent again to run later. Payload: task, key, reason,
#: holder, task_id, countdown.
task_deferred = Signal()
#: A Celery task ran, or was sent, without its lock, for the store gave no usable answer and
#: `on_outage` says so. Payload: task, key, reason, holder (None), task_id, side.
task_unguarded = Signal()
#: A call of a snapshot was answered. Payload: name, outcome, age (seconds), waited (seconds).
snapshot_served = Signal()
#: A compute of a snapshot has ended. Payload: name, outcome, fence, took (seconds).
snapshot_computed = Signal()


def acquired(name: str, grant: Grant, ttl: float) -> None:
    """Send `lock_acquired`."""
    if lock_acquired.receivers:  # a fingerprint takes time
        send(
            lock_acquired,
            name=name,
            fence=grant.fence,
            fingerprint=fingerprint(grant.token),
            waited=grant.waited,
            ttl=ttl,
        )


def contended(name: str, refusal: LatchNotAcquired) -> None:
    """Send `lock_contended`, unless the store said nothing: perhaps nobody holds the lock."""
    if not refusal.unanswered:
        send(
            lock_contended,
            name=name,
            reason=refusal.reason,
            holder=refusal.holder,
            waited=refusal.waited or 0.0,
        )


def send(signal: Signal, **payload: Any) -> None:
    """Send `signal` with the `Latch` class as its sender; log what receivers raise."""
    if not signal.receivers:
        return
    from django_latch.locks import Latch

    for receiver, outcome in signal.send_robust(sender=Latch, **payload):
        if isinstance(outcome, Exception):
            logger.error("a receiver failed: %r", receiver, exc_info=outcome)
