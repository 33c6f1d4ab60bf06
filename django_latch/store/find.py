"""The store of an alias; redis is imported when the first is asked for, for not all need one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_latch.store.base import Store


def store(using: str) -> Store:
    """See `connections.store`."""
    return _finder()(using)


@cache  # an import statement, even of what is there already, takes part of a lock's time
def _finder() -> Callable[[str], Store]:
    from django_latch.store.connections import store

    return store
