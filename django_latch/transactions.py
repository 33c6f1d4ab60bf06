"""Leases and database transactions: a lock that ends before its changes show protects nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from django.db import connections, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_latch.lease import Lease


class _AtEnd:
    """Releases a lease when the transaction it was registered with ends, either way.

    Django calls it after the commit, and forgets it at a rollback, also at one to a savepoint
    that was made before; being forgotten is how it hears of that.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def __call__(self) -> None:
        self._lease.release()

    def __del__(self) -> None:
        self._lease.release_soon()


def _open() -> Iterator[BaseDatabaseWrapper]:
    """The connections inside an atomic block, other than those that Django's TestCase opens."""
    for connection in connections.all(initialized_only=True):
        blocks = getattr(connection, "atomic_blocks", ())
        if any(not getattr(block, "_from_testcase", False) for block in blocks):
            yield connection


def is_open() -> bool:
    """Whether this thread is inside an atomic block."""
    return next(_open(), None) is not None


def at_end(lease: Lease) -> None:
    """Release `lease` when the open transaction has ended."""
    for connection in _open():
        transaction.on_commit(_AtEnd(lease), using=connection.alias)
        return


def warn_if_open(name: str) -> None:
    """Warn that a lock ends while the changes made under it are not visible yet."""
    if is_open():
        warnings.warn(
            f"the lock {name!r} ends inside an open atomic block: others may hold it before the "
            "changes made under it are committed; put the block inside the lock "
            "(`with latch(...), transaction.atomic():`) or use release_on='commit'",
            RuntimeWarning,
            stacklevel=2,
        )
