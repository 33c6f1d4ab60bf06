"""The seam: what the engine asks of a store, whatever is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from django_latch.core.calls import Call, Park

T = TypeVar("T")


class Store(Protocol):
    """A lock store. Every method raises StoreError, or LatchCorrupt for a key of a wrong type."""

    def call(self, call: Call[T]) -> T:
        """Run a script."""

    def park(self, park: Park[T]) -> T:
        """Wait for a wake message or the end of the slice, then run the script."""

    def batch(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run several in one round trip; an entry that failed is its error.

        On a connection of its own: this is how the heartbeat renews.
        """
