"""One use of a connection, sync: connected in time, dropped on any error, errors told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import redis.exceptions as redis_errors

from django_latch.core.calls import StoreError
from django_latch.core.timing import now
from django_latch.store.errors import store_error

if TYPE_CHECKING:
    from redis.connection import AbstractConnection

#: redis-py's attributes for connecting and for each answer.
CONNECT_TIMEOUTS: Final = ("socket_connect_timeout", "socket_timeout")


class Use:
    """The body of a `with` speaks on a connection; whatever goes wrong there, it is dropped.

    After a cancel or time-out the answer is still under way: it would be read by the next user.

    Parameters:
        connection: perhaps not yet connected.
        most: seconds to wait for an answer, however much time there is.
        until: when the caller's time is spent.

    Raises:
        StoreError: for errors of the connection, in place of them.
    """

    __slots__ = ("connection", "most", "until")

    def __init__(
        self, connection: AbstractConnection, most: float, until: float | None = None
    ) -> None:
        self.connection = connection
        self.most = most
        self.until = until

    def __enter__(self) -> Self:
        if getattr(self.connection, "_sock", None) is None:
            try:
                _connect(self.connection, self.until)
            except BaseException as error:
                self._fail(error, sent=False)
                raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if error is not None:
            self._fail(error, sent=True)

    def ask(self, packed: bytes) -> None:
        """Send what is packed, and `wait` for the answer."""
        # In one piece: each piece is sent, and wakes the server, for itself. And without
        # redis-py's health check, which is off and yet takes time.
        self.connection.send_packed_command([packed], check_health=False)
        if self.until is not None:
            self.wait()

    def wait(self) -> None:
        """Wait for the answer to what was sent last, no longer than there is time.

        Raises:
            redis.exceptions.TimeoutError: there is none.
        """
        if self.until is not None and not self.connection.can_read(
            timeout=patience(self.until, self.most)
        ):
            raise redis_errors.TimeoutError("no answer in time")

    def _fail(self, error: BaseException, sent: bool) -> None:
        self._drop()
        if isinstance(error, (redis_errors.RedisError, OSError)):
            raise told_apart(error, sent, self.until) from error

    def _drop(self) -> None:
        """Close the connection."""
        self.connection.disconnect()


def _connect(connection: AbstractConnection, until: float | None) -> None:
    """Connect within the caller's time, where that is shorter than the alias's time-outs.

    The socket's next user does not inherit the shorter ones.
    """
    if until is None:
        connection.connect()
        return
    usual = {name: getattr(connection, name, None) for name in CONNECT_TIMEOUTS}
    left = max(until - now(), 0.001)
    try:
        for name, most in usual.items():
            setattr(connection, name, min(most or left, left))
        connection.connect()
    finally:
        for name, most in usual.items():
            setattr(connection, name, most)
    # Nothing is under way yet, so the parser may begin again, with the time-outs as they are now.
    socket: Any = connection._sock
    socket.settimeout(usual["socket_timeout"])
    connection._parser.on_connect(connection)


def told_apart(error: Exception, sent: bool, until: float | None) -> StoreError:
    """An outage, or only the end of the caller's time."""
    if isinstance(error, (redis_errors.TimeoutError, TimeoutError)) and until and now() >= until:
        return StoreError(
            "no answer in the time given", reason="spent", unanswered=sent, again=False
        )
    return store_error(error, sent=sent)


def patience(until: float | None, most: float) -> float:
    """Seconds to wait for an answer."""
    return most if until is None else min(max(until - now(), 0.001), most)


def read(connection: AbstractConnection) -> object:
    """Read one reply; an error reply is returned, a broken connection raises."""
    try:
        return connection.read_response()
    except redis_errors.ConnectionError:  # among them BusyLoadingError, which is an answer too
        raise
    except redis_errors.ResponseError as error:
        return error
