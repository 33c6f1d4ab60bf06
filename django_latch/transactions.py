"""Leases and database transactions: a lock that ends before its changes show protects nothing."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import TYPE_CHECKING

from django.db import connections, transaction

from django_latch.exceptions import LatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_latch.lease import Lease

logger = logging.getLogger("django_latch")


class _AtEnd:
    """Releases a lease when the last of the transactions that it was registered with has ended.

    Django calls it after the commit, and forgets it at a rollback, also at one to a savepoint
    that was made before; being forgotten is how it hears of that.

    Parameters:
        lease: what to release.
        alias: the database of this one.
        open_in: the databases whose transactions have not ended; shared by all of one lease.
    """

    def __init__(self, lease: Lease, alias: str, open_in: set[str]) -> None:
        self._lease = lease
        self._alias = alias
        self._open_in = open_in

    def __call__(self) -> None:
        if self._is_last():
            try:
                self._lease.release()
            except LatchError as trouble:
                # An error now would say that nothing was committed, and keep other hooks from
                # their turn.
                logger.warning("%r was not released: %s", self._lease.name, trouble)

    def __del__(self) -> None:
        if self._is_last():
            self._lease.release_soon()

    def _is_last(self) -> bool:
        self._open_in.discard(self._alias)
        return not self._open_in


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
    """Release `lease` when the open transaction has ended; of several the last."""
    aliases = [connection.alias for connection in _open()]
    open_in = set(aliases)
    for alias in aliases:
        transaction.on_commit(_AtEnd(lease, alias, open_in), using=alias)


def warn_if_open(name: str) -> None:
    """Warn that a lock ends while the changes made under it are not visible yet."""
    if is_open():
        warnings.warn(
            f"the lock {name!r} ends inside an open atomic block: others may hold it before the "
            "changes made under it are committed; put the block inside the lock "
            "(`with latch(...), transaction.atomic():`) or use release_on='commit'",
            RuntimeWarning,
            stacklevel=_depth(),
        )


def _depth() -> int:
    """How many frames of ours stand above the code that uses the lock."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("django_latch."):
        depth, frame = depth + 1, frame.f_back
    return depth
