"""One use of a connection, sync: connected in time, dropped on any error, errors told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import redis.exceptions as redis_errors

from django_latch.core.calls import StoreError
from django_latch.core.timing import now
from django_latch.store.errors import store_error

if TYPE_CHECKING:
    from redis.connection import AbstractConnection

T = TypeVar("T")

#: redis-py's attributes for connecting and for each answer.
CONNECT_TIMEOUTS: Final = ("socket_connect_timeout", "socket_timeout")


def guarded(
    connection: AbstractConnection,
    use: Callable[[], T],
    drop: Callable[[], None],
    until: float | None = None,
) -> T:
    """Connect and use a connection; drop it on any error.

    After a cancel or time-out the answer is still under way: it would be read by the next user.
    """
    sent = False
    try:
        _connect(connection, until)
        sent = True
        return use()
    except BaseException as error:
        drop()
        if isinstance(error, (redis_errors.RedisError, OSError)):
            raise told_apart(error, sent, until) from error
        raise


def _connect(connection: AbstractConnection, until: float | None) -> None:
    """Connect within the caller's time, where that is shorter than the alias's time-outs.

    The socket's next user does not inherit the shorter ones.
    """
    if getattr(connection, "_sock", None) is not None:
        return
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


def read(connection: AbstractConnection) -> object:
    """Read one reply; an error reply is returned, a broken connection raises."""
    try:
        return connection.read_response()
    except redis_errors.ConnectionError:  # among them BusyLoadingError, which is an answer too
        raise
    except redis_errors.ResponseError as error:
        return error
