"""The locks that are compared, each behind the same two calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import redis_lock
from django_redis import get_redis_connection

from django_latch import Lease, latch

#: Seconds that ours waits for; the others wait as long as it takes.
PATIENCE = 30

OURS, REDIS_PY, PYTHON_REDIS_LOCK = "django_latch", "redis-py Lock", "python-redis-lock"


class Lock(Protocol):
    """A lock of some library."""

    def acquire(self) -> object:
        """Wait until it is held."""

    def release(self) -> object:
        """Give it back."""


class Latch:
    """Ours."""

    def __init__(self, name: str, ttl: int) -> None:
        self._latch = latch(name, ttl=ttl, timeout=PATIENCE)

    def acquire(self) -> None:
        self._lease: Lease = self._latch.acquire()

    def release(self) -> None:
        self._lease.release()


def _redis_py(name: str, ttl: int) -> Lock:
    lock: Lock = get_redis_connection("default").lock(name, timeout=ttl)
    return lock


def _python_redis_lock(name: str, ttl: int) -> Lock:
    lock: Lock = redis_lock.Lock(get_redis_connection("default"), name, expire=ttl)
    return lock


PEERS: dict[str, Callable[[str, int], Lock]] = {
    OURS: Latch,
    REDIS_PY: _redis_py,
    PYTHON_REDIS_LOCK: _python_redis_lock,
}

# What an actor is asked to do. The times are those of one clock, CLOCK_MONOTONIC on Linux, which
# all processes of a machine share.

_held: dict[str, Lock] = {}


def acquire(peer: str, name: str, ttl: int) -> tuple[float, float]:
    """Take a lock; when that began, and when it was held."""
    lock = PEERS[peer](name, ttl)
    began = time.monotonic()
    lock.acquire()
    held = time.monotonic()
    _held[name] = lock
    return began, held


def release(name: str) -> float:
    """Give a lock back; when that began."""
    began = time.monotonic()
    _held.pop(name).release()
    return began


def ping() -> float:
    """The seconds that one PING takes on a connection that has been idle."""
    client = get_redis_connection("default")
    began = time.monotonic()
    client.ping()
    return time.monotonic() - began


def hammer(peer: str, name: str, ttl: int, start: float, end: float) -> list[float]:
    """Take and give back a lock, again and again between two times; the seconds of each wait."""
    waits = []
    time.sleep(max(start - time.monotonic(), 0))
    while (began := time.monotonic()) < end:
        lock = PEERS[peer](name, ttl)
        lock.acquire()
        waits.append(time.monotonic() - began)
        lock.release()
    return waits
