"""The use of a connection of the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis.exceptions as redis_errors

from django_latch.store.use import Use, patience, told_apart

if TYPE_CHECKING:
    from django_latch.store.pool import Connections


class Loan(Use):
    """The body of a `with` speaks on a connection of the pool.

    Parameters:
        pool: the pool.
        most: seconds to wait for a connection, and for an answer.
        until: when the caller's time is spent.

    Raises:
        StoreError: no connection, in time; or for its errors, in place of them.
    """

    __slots__ = ("_permit", "_pool")

    def __init__(self, pool: Connections, most: float, until: float | None = None) -> None:
        try:
            self._permit = pool.borrow(patience(until, most))
        except redis_errors.TimeoutError as error:
            raise told_apart(error, False, until) from error
        self.connection = self._permit.connection
        self._pool = pool
        self.most = most
        self.until = until

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if error is None:
            self._pool.back(self._permit)
        else:
            self._fail(error, sent=True)

    def _drop(self) -> None:
        self._pool.drop(self._permit)
