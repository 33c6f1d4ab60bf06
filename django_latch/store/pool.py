"""The connections that script calls borrow.

redis-py's own pools cost a quarter of a lock's time per borrow: they ask the socket whether it
is still fit, which the engine need not know, because every call may be sent twice.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from redis.exceptions import TimeoutError as RedisTimeoutError

if TYPE_CHECKING:
    from redis.connection import AbstractConnection


class Permit:
    """Leave to use one connection. One that is lost goes back to its pool by itself.

    A thread that is interrupted, by KeyboardInterrupt or a task's time limit, just when it has
    taken a permit can give it back to nobody.
    """

    __slots__ = ("_pid", "_pool", "connection")

    connection: AbstractConnection

    def __init__(self, pool: Connections) -> None:
        self._pool = weakref.ref(pool)
        self._pid = pool.pid

    def __del__(self) -> None:
        pool = self._pool()
        if pool is not None and pool.pid == self._pid:
            pool.permits.put(type(self)(pool))


class Connections:
    """A bounded stack of connections.

    Parameters:
        make: makes an unconnected one.
        most: how many may be lent at once; a further borrower waits.
        timeout: seconds to wait for one.
    """

    def __init__(self, make: Callable[[], AbstractConnection], most: int, timeout: float) -> None:
        self._make = make
        self._most = most
        self._timeout = timeout
        self._reset()

    def _reset(self) -> None:
        self.pid = os.getpid()
        self._idle: list[AbstractConnection] = []
        self.permits: SimpleQueue[Permit] = SimpleQueue()
        for _ in range(self._most):
            self.permits.put(Permit(self))

    def borrow(self, patience: float) -> Permit:
        """A permit with a connection, perhaps not yet connected; give it to `back` or `drop`.

        Parameters:
            patience: seconds to wait for one, if that is less than the pool's own.

        Raises:
            redis.exceptions.TimeoutError: none became free in time.
        """
        if self.pid != os.getpid():  # a forked child must not speak on its parent's sockets
            self._reset()
        try:
            permit = self.permits.get(timeout=min(patience, self._timeout))
        except Empty:
            raise RedisTimeoutError(f"no connection became free; {self._most} are lent") from None
        try:
            permit.connection = self._idle.pop()
        except IndexError:
            try:
                permit.connection = self._make()
            except BaseException:
                self.permits.put(permit)
                raise
        return permit

    def back(self, permit: Permit) -> None:
        """Return a connection that has nothing under way."""
        self._idle.append(permit.connection)
        del permit.connection
        self.permits.put(permit)

    def drop(self, permit: Permit) -> None:
        """Return a broken one: closed, and the idle ones with it, for they are no better."""
        permit.connection.disconnect()
        del permit.connection
        self.clear()
        self.permits.put(permit)

    def clear(self) -> None:
        """Close the idle ones, after any connection to that server was found broken."""
        try:
            while True:  # one by one: what another thread has just taken is its own
                self._idle.pop().disconnect()
        except IndexError:
            pass
