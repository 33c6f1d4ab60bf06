"""For the tests of projects that use locks: locks in memory, and time that can be advanced.

With pytest, for every test::

    @pytest.fixture(autouse=True)
    def lock_store():
        with memory_locks() as store:
            yield store
"""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.test.utils import TestContextDecorator, override_settings

from django_latch.conf import check_settings
from django_latch.inventory import HolderInfo, LockInfo
from django_latch.locks import Latch
from django_latch.store.connections import Stores, store, swap_memory
from django_latch.store.memory import MemoryStore

__all__ = ["MemoryStore", "assert_free", "assert_held", "memory_locks"]


class memory_locks(TestContextDecorator):  # noqa: N801  used as override_settings is
    """Keep all locks in memory, none at first.

    A context manager that gives the store: its `advance(seconds)` lets time pass, its `flush()`
    loses everything. Also a decorator, of functions, coroutine functions, and `TestCase` classes,
    where each test begins without locks. They are shared by the threads and tasks of this
    process, and by nobody else.

    Parameters:
        changes: further keys of DJANGO_LATCH, such as ``TTL=5``.

    Raises:
        ImproperlyConfigured: on entry, a key or value that DJANGO_LATCH cannot have.
    """

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self._changes = changes
        # What was before, for each time that it was entered.
        self._before: list[tuple[override_settings, Stores]] = []

    def enable(self) -> MemoryStore:
        """Begin; `with` and the decorator do it."""
        given = getattr(settings, "DJANGO_LATCH", {})
        latch_settings = {**given, **self._changes, "BACKEND": "memory"}
        check_settings(latch_settings)  # before anything is changed
        override = override_settings(DJANGO_LATCH=latch_settings)
        override.enable()
        self._before.append((override, swap_memory()))
        return cast(MemoryStore, store())

    def disable(self) -> None:
        """End: the locks are forgotten, and everything is as it was."""
        override, stores = self._before.pop()
        swap_memory(stores)
        override.disable()

    def __enter__(self) -> MemoryStore:  # type: ignore[override]  # there it is None or Apps
        return self.enable()


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
