"""Where the running code is, and the lease it stands under."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from django_latch.lease import Lease

T = TypeVar("T")

#: Weak: a block that is interrupted before it has reset this must not keep its lease alive, for a
#: lease that is alive is renewed.
_current: ContextVar[weakref.ref[Lease] | None] = ContextVar("django_latch_current", default=None)


def current_lease() -> Lease | None:
    """The lease of the innermost `with`, decorated call or single-flight task that runs here."""
    lease = _current.get()
    return None if lease is None else lease()


class AsCurrent:
    """Makes `lease` the current one for the body of a `with`; None makes none."""

    __slots__ = ("_lease", "_mark")

    def __init__(self, lease: Lease | None) -> None:
        self._lease = lease

    def __enter__(self) -> Lease | None:
        if self._lease is not None:
            self._mark = _current.set(weakref.ref(self._lease))
        return self._lease

    def __exit__(self, *_: object) -> None:
        if self._lease is None:
            return
        try:
            _current.reset(self._mark)
        except ValueError:  # left in another context than entered, as generators and fixtures do
            _current.set(None)


def place() -> tuple[int, int]:
    """This thread and, in an event loop, this task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task) if task else 0


def place_name() -> str:
    """The same as a text that is unique among all machines."""
    thread, task = place()
    return f"{socket.gethostname()}/{os.getpid()}/{thread}/{task}"


class Entries(Generic[T]):
    """What a shared object was entered with, by each thread and task that entered it."""

    def __init__(self) -> None:
        self._entries: list[tuple[tuple[int, int], T]] = []

    def add(self, item: T) -> None:
        """Keep what was entered here."""
        self._entries.append((place(), item))

    def pop(self) -> T:
        """What this thread and task entered last; or the only thing that anybody entered.

        Raises:
            RuntimeError: others entered, and this one did not.
        """
        here = place()
        own = [entry for entry in self._entries if entry[0] == here]
        if not own and len(self._entries) != 1:
            raise RuntimeError(
                "entered elsewhere, by several threads or tasks; use acquire() and release()"
            )
        entry = own[-1] if own else self._entries[0]
        self._entries.remove(entry)
        return entry[1]
