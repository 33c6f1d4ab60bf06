"""For the tests of projects that use locks: locks in memory, and time that can be advanced.

With pytest, for every test::

    @pytest.fixture(autouse=True)
    def lock_store():
        with memory_locks() as store:
            yield store
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test.utils import override_settings

from django_latch.inventory import HolderInfo, LockInfo
from django_latch.locks import Latch
from django_latch.store.connections import forget_memory, store
from django_latch.store.memory import MemoryStore

__all__ = ["MemoryStore", "assert_free", "assert_held", "memory_locks"]


@contextmanager
def memory_locks(**changes: Any) -> Iterator[MemoryStore]:
    """Keep all locks in memory, none at first; also usable as a decorator.

    They are shared by the threads and tasks of this process, and by nobody else.

    Parameters:
        changes: further keys of DJANGO_LATCH, such as ``TTL=5``.

    Yields:
        The store: `advance(seconds)` lets time pass, `flush()` loses everything.
    """
    given = getattr(settings, "DJANGO_LATCH", {})
    with override_settings(DJANGO_LATCH={**given, **changes, "BACKEND": "memory"}):
        forget_memory()
        try:
            fresh = store()
            if not isinstance(fresh, MemoryStore):
                raise TypeError(f"BACKEND is 'memory', and the store is {fresh!r}")
            yield fresh
        finally:
            forget_memory()


def assert_held(name: str, *, using: str | None = None) -> HolderInfo:
    """Fail unless somebody holds the lock.

    Parameters:
        name: as given to `latch`, its template filled in.
        using: the cache alias. Default: the CACHE_ALIAS setting.

    Returns:
        The holder; the one with the lowest fence where there are several.

    Raises:
        AssertionError: nobody does.
        LatchUnavailable: the store gave no answer.
    """
    lock = Latch(name, using=using).inspect()
    held = [holder for holder in lock.holders if holder.state == "held"] if lock else []
    if not held:
        raise AssertionError(f"{name!r} is not held: {_said(lock)}")
    return held[0]


def assert_free(name: str, *, using: str | None = None) -> None:
    """Fail if somebody holds the lock or waits for it; parameters as for `assert_held`.

    Raises:
        AssertionError: says who.
        LatchUnavailable: the store gave no answer.
    """
    lock = Latch(name, using=using).inspect()
    if lock is not None:
        raise AssertionError(f"{name!r} is not free: {_said(lock)}")


def _said(lock: LockInfo | None) -> str:
    if lock is None:
        return "nobody holds it or waits for it"
    holders = [f"{holder.state} by {holder.owner.describe()}" for holder in lock.holders]
    return ", ".join([*holders, f"{lock.waiters} waiting"])
