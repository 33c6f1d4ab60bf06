"""Calls by a worker's main process, which looks after all children and must not stand still."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from django_latch.core.calls import Call
from django_latch.core.timing import now
from django_latch.store.connections import store

T = TypeVar("T")

#: Seconds to wait for the lock store, at most.
PATIENCE: Final = 0.5


def ask(call: Call[T]) -> T:
    """Send a call, and wait for its answer for a moment only.

    Raises:
        StoreError, LatchError: no usable answer.
    """
    return store().call(replace(call, until=now() + PATIENCE))
