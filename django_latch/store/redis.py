"""The lock store on a Redis or Valkey server, sync."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import redis.exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from django_latch.core.calls import Call, Glance, Park, StoreError, Watch
from django_latch.core.snapshot import Seen
from django_latch.core.timing import milliseconds, now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchCorrupt
from django_latch.store import repair, wire
from django_latch.store.aredis import AsyncStores
from django_latch.store.base import Codec
from django_latch.store.codec import PickleCodec
from django_latch.store.errors import is_wrong_type, store_error
from django_latch.store.exchange import TIMEOUT, Exchange, WrongType, corrupt, silent_fence
from django_latch.store.layout import Layout
from django_latch.store.loan import Loan
from django_latch.store.pool import Connections
from django_latch.store.use import Use, read

if TYPE_CHECKING:
    from redis.connection import AbstractConnection, ConnectionPool

T = TypeVar("T")

#: Seconds by which the server's own end of a wait follows ours.
OVERRUN: Final = 0.25

#: Seconds that the answer to a waiter's last request is awaited for.
LAST: Final = 1.0

#: Most connections of a process for script calls, however many the alias allows.
CONNECTIONS: Final = 100


class RedisStore:
    """Runs the scripts on the server behind one django-redis alias.

    Parameters:
        pool: the alias's connection pool; its settings make our own connections, its
            connections are never used.
        prefix: what every key begins with.
        codec, version: for the values of snapshots; of the alias.
    """

    def __init__(
        self, pool: ConnectionPool, prefix: str, codec: Codec | None = None, version: int = 1
    ) -> None:
        self.codec: Codec = codec or PickleCodec()
        self.version = version
        self.layout = Layout(prefix)
        self.exchange = Exchange(self.layout)
        given = pool.connection_kwargs
        self._kwargs = {
            **given,
            "socket_timeout": given.get("socket_timeout") or TIMEOUT,
            "socket_connect_timeout": given.get("socket_connect_timeout") or TIMEOUT,
            # Sending again is the engine's business: only then does it know that it did.
            "retry": Retry(NoBackoff(), 0),
            "retry_on_timeout": False,
            "health_check_interval": 0,  # a broken connection is found by what is sent twice
            "decode_responses": False,
        }
        self._kwargs.pop("retry_on_error", None)
        # Not a method: without a cycle a store that is dropped closes its sockets at once.
        self._connection: Callable[[], AbstractConnection] = functools.partial(
            pool.connection_class, **self._kwargs
        )
        self._pool = Connections(self._connection, min(pool.max_connections, CONNECTIONS), TIMEOUT)
        self._beat: tuple[int, AbstractConnection] | None = None
        self._waiters: list[tuple[int, AbstractConnection]] = []
        #: Seconds that a call without a time of its own waits for an answer.
        self.patience = float(self._kwargs["socket_timeout"])
        self._twins = AsyncStores(pool.connection_class, self._kwargs, self.exchange)

    def wake_id(self) -> str:
        """A wake list for one acquisition."""
        return new_token()[:16]

    def twin(self) -> Any:
        """The async store of the running event loop."""
        return self._twins.of_running_loop()

    def repair(self, *, dry_run: bool) -> list[tuple[str, str]]:
        """Put our keys in order; see store.repair."""
        return repair.repair(self, dry_run=dry_run)

    def recorded(self) -> set[str]:
        """The names of the locks of which there are records."""
        return repair.recorded(self)

    # The ways to run a script

    def call(self, call: Call[T]) -> T:
        """Run a script on a connection of the pool."""
        with Loan(self._pool, self.patience, call.until) as use:
            use.ask(self.exchange.packed(call))
            reply = read(use.connection)
            if isinstance(reply, redis_errors.NoScriptError):
                reply = self._in_full(use.connection, call)
        return self._outcome(call, reply)

    def pipeline(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run several in one round trip; an entry that failed is its error."""
        with Loan(self._pool, self.patience) as use:
            replies = self._sent(use, calls)
        return self._outcomes(calls, replies)

    def batch(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """The same on the heartbeat's own connection."""
        # A thread's own: gevent's sockets serve no other, and the exit runs in the main thread.
        thread = threading.get_native_id()
        if self._beat is None or self._beat[0] != thread:
            self._beat = thread, self._connection()
        with Use(self._beat[1], self.patience, calls[0].until) as use:
            replies = self._sent(use, calls)
        return self._outcomes(calls, replies)

    def command(self, *args: str | int) -> Any:
        """Run one plain command that only reads, or that may be run twice."""
        with Loan(self._pool, self.patience) as use:
            use.ask(wire.command(len(args), wire.pack(args)))
            reply = read(use.connection)
        if not isinstance(reply, Exception):
            return reply
        if is_wrong_type(reply):
            raise corrupt(str(args[1]), "holds something else") from reply
        raise store_error(reply, sent=True) from reply

    def _sent(self, use: Use, calls: Sequence[Call[Any]]) -> list[object]:
        """Send, read; and once more, with its text, each script the server does not know."""
        packed = [self.exchange.packed(call) for call in calls]
        use.ask(b"".join(packed))
        replies = [read(use.connection) for _ in calls]
        for at in self.exchange.unknown(replies):
            replies[at] = self._in_full(use.connection, calls[at])
        return replies

    def _in_full(self, connection: AbstractConnection, call: Call[Any]) -> object:
        """Send a script with its text, and read the reply."""
        connection.send_packed_command([self.exchange.packed(call, "EVAL")])
        return read(connection)

    def _outcome(self, call: Call[T], reply: object) -> T:
        try:
            return self.exchange.outcome(call, reply)
        except WrongType as error:
            asking = self.exchange.corrupt(call)
            command = next(asking)
            try:
                while True:
                    command = asking.send(self.command(*command))
            except StopIteration as found:
                raise found.value from error

    def _outcomes(self, calls: Sequence[Call[Any]], replies: Sequence[object]) -> list[Any]:
        outcomes: list[Any] = []
        for call, reply in zip(calls, replies, strict=True):
            try:
                outcomes.append(self._outcome(call, reply))
            except (StoreError, LatchCorrupt) as error:
                outcomes.append(error)
        return outcomes

    # Waiting

    def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait on a connection of one's own for a wake message, or until the time is spent.

        The request stands behind the BLPOP in the same pipeline, so the server runs it in the
        moment the message arrives. The time is the client's: the server's own time-out for
        BLPOP is late, and stands here only for the nudge that is refused as memory is full.
        """
        connection, call = self._waiter(), park.call
        # The last answer is awaited: a permit may be in it.
        end = max(call.until or 0, park.until + LAST)
        wake_list = self.layout.wake_list(park.wake)
        left = max(park.until - now(), 0.001)
        blocking = wire.command(3, wire.pack(("BLPOP", wake_list, f"{left + OVERRUN:.3f}")))
        try:
            with Use(connection, self.patience, end) as use:
                # In one piece, see `Use.ask`.
                connection.send_packed_command([blocking + self.exchange.packed(call)])
                if not connection.can_read(timeout=max(park.until - now(), 0.001)):
                    self._nudge(wake_list, end)
                    use.wait()
                woken = read(connection)  # perhaps -UNBLOCKED: the request stands behind it
                reply = read(connection)
                if isinstance(reply, redis_errors.NoScriptError):
                    reply = self._in_full(connection, call)
        except BaseException:
            # The request is sent again at once, and not on another broken one.
            self._pool.clear()
            raise
        self._waiters.append((os.getpid(), connection))
        return self._outcome(call, reply), silent_fence(woken)

    def glance(self, glance: Glance) -> Seen | None:
        """Read a snapshot's value, if it is fresh."""
        with Loan(self._pool, self.patience, glance.until) as use:
            use.ask(self.exchange.glancing(glance))
            replies = [read(use.connection), read(use.connection)]
        return self.exchange.glanced(glance, replies)

    def watch(self, watch: Watch) -> Seen | None:
        """Wait for news of a snapshot, and glance at it, in one pipeline as `park` does."""
        connection, glance = self._waiter(), watch.glance
        left = max(watch.until - now(), 0.001)
        blocking = self.exchange.watching([(glance.name, watch.since)], left)
        replies: list[object] = []
        with Use(connection, self.patience):
            connection.send_packed_command([blocking + self.exchange.glancing(glance)])
            if connection.can_read(timeout=left):
                replies = [read(connection) for _ in range(3)]
        if not replies:  # its own answer is still under way
            connection.disconnect()
            return None
        self._waiters.append((os.getpid(), connection))
        if isinstance(replies[0], Exception):
            raise store_error(replies[0], sent=True) from replies[0]
        return self.exchange.glanced(glance, replies[1:])

    def _nudge(self, wake_list: str, until: float) -> None:
        """End our own BLPOP. By a message, not CLIENT UNBLOCK: it needs no further right."""
        push = wire.command(3, wire.pack(("LPUSH", wake_list, "")))
        # In one piece, so that the list never stays without an end.
        expire = wire.command(3, wire.pack(("PEXPIRE", wake_list, milliseconds(TIMEOUT))))
        with Loan(self._pool, self.patience, until) as use:
            use.ask(push + expire)
            read(use.connection)
            read(use.connection)

    def _waiter(self) -> AbstractConnection:
        try:
            while True:  # another thread may take the last one at any moment
                pid, connection = self._waiters.pop()
                if pid == os.getpid():
                    return connection
        except IndexError:
            return self._connection()

    # Connections

    def close(self) -> None:
        """Close the connections that nobody uses just now."""
        self._pool.clear()
        while self._waiters:
            _, connection = self._waiters.pop()
            connection.disconnect()
