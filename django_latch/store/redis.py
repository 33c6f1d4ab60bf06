"""The lock store on a Redis or Valkey server, sync."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import redis.exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from django_latch.conf import Settings, conf
from django_latch.core.calls import Call, Park, StoreError
from django_latch.core.replies import BadReply, is_record, text
from django_latch.core.timing import milliseconds, now
from django_latch.exceptions import LatchCorrupt
from django_latch.store import wire
from django_latch.store.errors import is_wrong_type, store_error
from django_latch.store.pool import Connections
from django_latch.store.scripts import KEYS, script

if TYPE_CHECKING:
    from redis.connection import AbstractConnection, ConnectionPool

T = TypeVar("T")

#: Seconds for connecting and for one command, where the alias sets none.
TIMEOUT: Final = 5.0

#: Schema number in every key. A release that changes the records counts it up.
SCHEMA: Final = 1

#: Most connections of a process for script calls, however many the alias allows.
CONNECTIONS: Final = 100

#: How many packed heads of calls are kept ready.
HEADS: Final = 1024

EVENT_LEVELS: Final = {"none": 0, "problems": 1, "all": 2}


class RedisStore:
    """Runs the scripts on the server behind one django-redis alias.

    Parameters:
        pool: the alias's connection pool; its settings make our own connections, its
            connections are never used.
        prefix: what every key begins with.
    """

    buckets = 1
    WEEK = 604_800_000  # ms

    def __init__(self, pool: ConnectionPool, prefix: str) -> None:
        self.prefix = prefix
        self._connection_class = pool.connection_class
        given = pool.connection_kwargs
        self._kwargs = {
            **given,
            "socket_timeout": given.get("socket_timeout") or TIMEOUT,
            "socket_connect_timeout": given.get("socket_connect_timeout") or TIMEOUT,
            # Sending again is the engine's business: only then does it know that it did.
            "retry": Retry(NoBackoff(), 0),
            "retry_on_timeout": False,
            "decode_responses": False,
        }
        self._kwargs.pop("retry_on_error", None)
        self._pool = Connections(self._connection, min(pool.max_connections, CONNECTIONS), TIMEOUT)
        self._settings: Settings | None = None
        self._heads: dict[Any, tuple[int, bytes]] = {}
        self._beat: tuple[int, AbstractConnection] | None = None
        self._waiters: list[tuple[int, AbstractConnection]] = []

    # Keys and arguments

    def keys(self, name: str) -> list[str]:
        """The keys every script declares, for the lock `name`."""
        bucket = self.bucket_key(0)
        return [bucket + (kind if len(kind) > 1 else f"{kind}:{name}") for kind in KEYS]

    def bucket_key(self, bucket: int) -> str:
        """What the keys of a bucket begin with; the part in braces is their hash tag."""
        return f"{self.prefix}:{SCHEMA}:{{{bucket:02d}}}:"

    @property
    def index_key(self) -> str:
        """The key of the index: name -> expiry."""
        return self.bucket_key(0) + "index"

    # For latch_clear: which keys are there, and what each must be

    def own_keys(self) -> list[str]:
        """Every key of ours in the database, found by SCAN."""
        pattern = "".join(f"\\{c}" if c in "*?[]\\^" else c for c in self.bucket_key(0)) + "*"
        cursor, found = "0", set[str]()
        while True:
            cursor, part = self.command("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            found.update(key.decode("utf-8", "surrogateescape") for key in part)
            if int(cursor) == 0:
                return sorted(found)

    def split(self, key: str) -> tuple[str, str]:
        """Kind and lock name of a key of ours; no name for a bucket's own."""
        kind, _, name = key.removeprefix(self.bucket_key(0)).partition(":")
        return kind, name

    @staticmethod
    def type_of(kind: str) -> str | None:
        """The type of the keys of a kind; None for a kind that is not ours."""
        return {"R": "hash", "stamp": "string", "events": "stream", "W": "list"}.get(
            kind, "zset" if kind in KEYS else None
        )

    def unreadable(self, key: str) -> list[str]:
        """The tokens in the records `key` whose record no script can read."""
        flat = self.command("HGETALL", key)
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        return [
            text(token)
            for token, record in pairs
            if text(token) != "@" and not is_record(text(record))
        ]

    def _command(self, call: Call[Any], verb: str = "EVALSHA") -> bytes:
        """A script call, packed."""
        settings = conf.load()
        if settings is not self._settings or len(self._heads) > HEADS:
            self._settings, self._heads = settings, {}
        known = (call.verb, call.name, call.args, verb)
        head = self._heads.get(known)
        if head is None:
            head = self._heads[known] = self._head(call, verb, settings)
        return wire.command(head[0] + len(call.own), head[1], wire.pack(call.own))

    def _head(self, call: Call[Any], verb: str, settings: Settings) -> tuple[int, bytes]:
        """The arguments that are the same from call to call, and how many they are."""
        code = script(call.verb)
        args = (
            verb,
            code.sha if verb == "EVALSHA" else code.text,
            len(KEYS),
            *self.keys(call.name),
            milliseconds(settings.grace),
            EVENT_LEVELS[settings.events],
            settings.events_max,
            call.name,
            milliseconds(settings.live),
            *call.args,
        )
        return len(args), wire.pack(args)

    # The ways to run a script

    def call(self, call: Call[T]) -> T:
        """Run a script on a connection of the pool."""
        (reply,) = self._borrowed(lambda connection: self._exchange(connection, [call]))
        return self._parsed(call, reply)

    def pipeline(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run several in one round trip; an entry that failed is its error."""
        replies = self._borrowed(lambda connection: self._exchange(connection, calls))
        return [self._outcome(call, reply) for call, reply in zip(calls, replies, strict=True)]

    def batch(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """The same on the heartbeat's own connection."""
        if self._beat is None or self._beat[0] != os.getpid():
            self._beat = os.getpid(), self._connection()
        connection, sent = self._beat[1], False
        try:
            connection.connect()
            sent = True
            replies = self._exchange(connection, calls)
        except BaseException as error:
            connection.disconnect()
            if isinstance(error, (redis_errors.RedisError, OSError)):
                raise store_error(error, sent=sent) from error
            raise
        return [self._outcome(call, reply) for call, reply in zip(calls, replies, strict=True)]

    def command(self, *args: str | int) -> Any:
        """Run one plain command that only reads, or that may be run twice."""

        def exchange(connection: AbstractConnection) -> object:
            connection.send_packed_command([wire.command(len(args), wire.pack(args))])
            return _read(connection)

        reply = self._borrowed(exchange)
        if not isinstance(reply, Exception):
            return reply
        if is_wrong_type(reply):
            raise _corrupt(str(args[1]), "holds something else", name="") from reply
        raise store_error(reply, sent=True) from reply

    def _exchange(self, connection: AbstractConnection, calls: Sequence[Call[Any]]) -> list[object]:
        """Send, read; and once more, with its text, each script the server does not know."""
        connection.send_packed_command([b"".join([self._command(call) for call in calls])])
        self._await(connection, calls[0].until)
        replies = [_read(connection) for _ in calls]
        for at, reply in enumerate(replies):
            if isinstance(reply, redis_errors.NoScriptError):
                connection.send_packed_command([self._command(calls[at], "EVAL")])
                replies[at] = _read(connection)
        return replies

    @staticmethod
    def _await(connection: AbstractConnection, until: float | None) -> None:
        """Wait for an answer no longer than the caller's time allows."""
        if until is not None and not connection.can_read(timeout=max(until - now(), 0.001)):
            connection.disconnect()
            raise StoreError(
                "no answer in the time given", reason="spent", unanswered=True, again=False
            )

    def _parsed(self, call: Call[T], reply: object) -> T:
        if isinstance(reply, Exception):
            if is_wrong_type(reply):
                raise self._find_corrupt(call.name) from reply
            raise store_error(reply, sent=True) from reply
        try:
            return call.parse(reply)
        except BadReply as error:
            raise store_error(error, sent=True) from error

    def _outcome(self, call: Call[Any], reply: object) -> Any:
        try:
            return self._parsed(call, reply)
        except (StoreError, LatchCorrupt) as error:
            return error

    # Waiting

    def park(self, park: Park[T]) -> T:
        """Wait on a connection of one's own for a wake message, or until the time is spent.

        The request stands behind the BLPOP in the same pipeline, so the server runs it in the
        moment the message arrives. The time is the client's: the server's own time-out for
        BLPOP is late, and stands here only for clients that vanish.
        """
        connection, call = self._waiter(), park.call
        wake_key = f"{self.bucket_key(0)}W:{park.wake}"
        left = max(park.until - now(), 0.001)
        sent = False
        try:
            connection.connect()
            blocking = ("BLPOP", wake_key, f"{left + TIMEOUT:.3f}")
            sent = True
            connection.send_packed_command(
                [wire.command(3, wire.pack(blocking)), self._command(call)]
            )
            if not connection.can_read(timeout=left):
                # End our own BLPOP. A list, not CLIENT UNBLOCK: it needs no further right.
                self.command("LPUSH", wake_key, "")
                self.command("PEXPIRE", wake_key, milliseconds(TIMEOUT))
            # The BLPOP's own answer says nothing we need, not even an error (-UNBLOCKED).
            self._await(connection, call.until and max(call.until, now() + 1))
            _read(connection)
            reply = _read(connection)
            if isinstance(reply, redis_errors.NoScriptError):
                connection.send_packed_command([self._command(call, "EVAL")])
                reply = _read(connection)
        except BaseException as error:
            # Whatever is under way on this connection belongs to nobody any more.
            connection.disconnect()
            if isinstance(error, (redis_errors.RedisError, OSError)):
                raise store_error(error, sent=sent) from error
            raise
        self._waiters.append((os.getpid(), connection))
        return self._parsed(call, reply)

    def _waiter(self) -> AbstractConnection:
        while self._waiters:
            pid, connection = self._waiters.pop()
            if pid == os.getpid():
                return connection
        return self._connection()

    # Connections

    def _connection(self) -> AbstractConnection:
        connection: AbstractConnection = self._connection_class(**self._kwargs)
        return connection

    def _borrowed(self, use: Callable[[AbstractConnection], T]) -> T:
        """What `use` returns; the connection is lent for that long."""
        sent = False
        try:
            connection = self._pool.borrow()
        except redis_errors.ConnectionError as error:
            raise store_error(error, sent=False) from error
        try:
            connection.connect()
            sent = True
            result = use(connection)
        except BaseException as error:
            # After a cancel or time-out the answer would be read by the next borrower.
            self._pool.drop(connection)
            if isinstance(error, (redis_errors.RedisError, OSError)):
                raise store_error(error, sent=sent) from error
            raise
        self._pool.back(connection)
        return result

    def _find_corrupt(self, name: str) -> LatchCorrupt:
        """Name the key that is not what it should be."""
        for kind, key in zip(KEYS, self.keys(name), strict=True):
            expected = self.type_of(kind)
            found = self.command("TYPE", key).decode()
            if found not in ("none", expected):
                return _corrupt(key, f"is a {found} where a {expected} belongs", name=name)
        return _corrupt(self.keys(name)[0], "holds a record that cannot be read", name=name)


def _corrupt(key: str, problem: str, *, name: str) -> LatchCorrupt:
    return LatchCorrupt(
        f"the key {key!r} {problem}; `manage.py latch_clear --stale` repairs it",
        name=name,
        reason="corrupt",
    )


def _read(connection: AbstractConnection) -> object:
    """Read one reply; an error reply is returned, a broken connection raises."""
    try:
        return connection.read_response()
    except redis_errors.ConnectionError:  # among them BusyLoadingError, which is an answer too
        raise
    except redis_errors.ResponseError as error:
        return error
