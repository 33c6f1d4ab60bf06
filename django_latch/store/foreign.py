"""What other lock libraries for Celery have left in Redis: celery-once and celery-singleton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import redis
import redis.exceptions as redis_errors
from django_redis import get_redis_connection

from django_latch.conf import conf
from django_latch.core.errors import unavailable
from django_latch.exceptions import LatchValueError
from django_latch.store.errors import store_error
from django_latch.store.exchange import TIMEOUT

ONCE: Final = "celery-once"
SINGLETON: Final = "celery-singleton"

#: What a key of celery-singleton begins with, unless its ``singleton_key_prefix`` says otherwise.
PREFIX: Final = "SINGLETONLOCK_"

#: The value of a key of celery-once: a token, or in its first versions the time of expiry.
_ONCE_VALUE: Final = re.compile(r"[0-9a-f]{32}|\d{10}")
#: What follows the prefix in a key of celery-singleton: an MD5 sum of the call.
_SUM: Final = re.compile(r"[0-9a-f]{32}")

#: Keys asked for in one step of the search.
_STEP: Final = 500


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A lock of another library."""

    key: bytes
    library: str
    value: bytes
    #: Seconds until it ends by itself; None: never.
    expires_in: float | None

    @property
    def name(self) -> str:
        """The key as text."""
        return self.key.decode(errors="backslashreplace")

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe; `task_id` where the value says it."""
        told = self.value.decode(errors="backslashreplace")
        return {
            "key": self.name,
            "library": self.library,
            "task_id": told if self.library == SINGLETON else None,
            "expires_in": self.expires_in,
        }


class ForeignKeys:
    """The locks of other libraries in one Redis database.

    Parameters:
        url: of the database; None: the one that the locks of this project are in.
        prefix: what the keys of celery-singleton begin with.

    Raises:
        LatchValueError: the URL cannot be used.
    """

    def __init__(self, url: str | None = None, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        if url is None:
            self._client: redis.Redis = get_redis_connection(conf.cache_alias, write=True)
            return
        try:
            self._client = redis.Redis.from_url(
                url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
            )
        except ValueError:  # not told: what stands in the wrong place may be a password
            raise LatchValueError("--url must be a redis://, rediss:// or unix:// URL") from None

    def find(self) -> list[ForeignKey]:
        """All of them, by key.

        Raises:
            LatchUnavailable: the server gives no answer.
        """
        with _told():
            found = {key: library for library, key in self._candidates()}
            keys = sorted(found)
            steps = [keys[start : start + _STEP] for start in range(0, len(keys), _STEP)]
            return [lock for step in steps for lock in self._read(step, found)]

    def drop(self, lock: ForeignKey) -> bool:
        """Delete a key if it still has the value that `find` saw.

        Returns:
            Whether it was deleted; False: it is gone, or somebody has taken that lock anew.

        Raises:
            LatchUnavailable: the server gives no answer.
        """
        with _told(), self._client.pipeline() as pipe:
            pipe.watch(lock.key)
            if pipe.type(lock.key) != b"string" or pipe.get(lock.key) != lock.value:
                return False
            pipe.multi()
            pipe.delete(lock.key)
            try:
                return bool(pipe.execute()[0])
            except redis_errors.WatchError:  # somebody changed it since
                return False

    def _candidates(self) -> Iterator[tuple[str, bytes]]:
        for library, prefix in ((ONCE, "qo_"), (SINGLETON, self._prefix)):
            pattern = re.sub(r"([*?\[\]\\^])", r"\\\1", prefix) + "*"
            for key in self._client.scan_iter(pattern, count=_STEP):
                rest = key[len(prefix.encode()) :].decode(errors="replace")
                if library == ONCE or _SUM.fullmatch(rest):
                    yield library, key

    def _read(self, keys: Sequence[bytes], libraries: dict[bytes, str]) -> Iterator[ForeignKey]:
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.type(key)
            strings = [
                key for key, kind in zip(keys, pipe.execute(), strict=True) if kind == b"string"
            ]
            for key in strings:
                pipe.get(key)
                pipe.pttl(key)
            facts = iter(pipe.execute())
        for key, value, left in zip(strings, facts, facts, strict=True):
            library = libraries[key]
            if value is None:
                continue  # it ended meanwhile
            if library == ONCE and not _ONCE_VALUE.fullmatch(value.decode(errors="replace")):
                continue  # somebody else's key
            yield ForeignKey(key, library, value, left / 1000 if left >= 0 else None)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (redis_errors.RedisError, OSError) as error:
        raise unavailable("", store_error(error, sent=False)) from error
