"""Where the running code is, and the lease it stands under."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_latch.lease import Lease

_current: ContextVar[Lease | None] = ContextVar("django_latch_current", default=None)


def current_lease() -> Lease | None:
    """The lease of the innermost `with`, decorated call or single-flight task that runs here."""
    return _current.get()


@contextmanager
def as_current(lease: Lease) -> Iterator[Lease]:
    """Make `lease` the current one for the body."""
    mark = _current.set(lease)
    try:
        yield lease
    finally:
        try:
            _current.reset(mark)
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
