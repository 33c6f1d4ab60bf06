"""A project's notion of its current tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("tenant", default=None)


def current() -> str | None:
    """What the setting NAMESPACE names."""
    return _current.get()


@contextmanager
def acting(tenant: str) -> Iterator[None]:
    """Act for a tenant inside."""
    mark = _current.set(tenant)
    try:
        yield
    finally:
        _current.reset(mark)
