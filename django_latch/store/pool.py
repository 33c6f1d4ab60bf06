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
        self._pid = os.getpid()
        self._idle: list[AbstractConnection] = []
        self._made: weakref.WeakSet[AbstractConnection] = weakref.WeakSet()
        self._permits: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._most):
            self._permits.put(None)

    def borrow(self, patience: float) -> AbstractConnection:
        """A connection, perhaps not yet connected; give it back by `back` or `drop`.

        Parameters:
            patience: seconds to wait for one, if that is less than the pool's own.

        Raises:
            redis.exceptions.TimeoutError: none became free in time.
        """
        if self._pid != os.getpid():  # a forked child must not speak on its parent's sockets
            self._reset()
        try:
            self._permits.get(timeout=min(patience, self._timeout))
        except Empty:
            if patience < self._timeout or not self._found_lost():
                raise RedisTimeoutError(
                    f"no connection became free; {self._most} are lent"
                ) from None
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            made = self._make()
            self._made.add(made)
            return made
        except BaseException:
            self._permits.put(None)
            raise

    def _found_lost(self) -> bool:
        """Whether fewer are lent than permits are gone; one of those is the caller's then.

        A thread that is interrupted, by KeyboardInterrupt or a task's time limit, just when it
        has taken a permit can give it back to nobody.
        """
        lost = self._most - (len(self._made) - len(self._idle))
        for _ in range(lost - 1):
            self._permits.put(None)
        return lost > 0

    def back(self, connection: AbstractConnection) -> None:
        """Return a connection that has nothing under way."""
        self._idle.append(connection)
        self._permits.put(None)

    def drop(self, connection: AbstractConnection) -> None:
        """Return a broken one: closed, and the idle ones with it, for they are no better."""
        connection.disconnect()
        self.clear()
        self._permits.put(None)

    def clear(self) -> None:
        """Close the idle ones, after any connection to that server was found broken."""
        try:
            while True:  # one by one: what another thread has just taken is its own
                self._idle.pop().disconnect()
        except IndexError:
            pass
