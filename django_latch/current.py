"""The lease that the running code stands under."""

from __future__ import annotations

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
