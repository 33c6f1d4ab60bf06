"""A free lock is taken and given back: what every job pays."""

from __future__ import annotations

import secrets
from itertools import cycle

import redis_lock
from django_redis import get_redis_connection

from benchmarks.measure import Operation, Scenario
from django_latch import latch

#: Seconds that each lock would live.
TTL = 30
#: Names that a peer goes round, since real jobs rarely share one.
NAMES = 50

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


def scenario() -> Scenario:
    """Acquire and release; every peer uses the client and pool that django-redis gives."""
    return Scenario(
        title="uncontended acquire + release",
        peers={
            "SET NX PX + EVALSHA": raw_pair(),
            "django_latch": ours(),
            "redis-py Lock": redis_py(),
            "python-redis-lock": python_redis_lock(auto_renewal=False),
            "python-redis-lock, renewed": python_redis_lock(auto_renewal=True),
        },
        baseline="SET NX PX + EVALSHA",
        limits={"django_latch": 1.3},
    )


def names(peer: str) -> cycle[str]:
    """Return lock names of this peer, round and round."""
    return cycle([f"bench:{peer}:{number}" for number in range(NAMES)])


def raw_pair() -> Operation:
    """The least that two round trips can do: no fence, no renewal, no record of the owner."""
    client = get_redis_connection("default")
    sha = client.script_load(RELEASE)
    keys = names("raw")

    def pair() -> None:
        key, token = next(keys), secrets.token_hex(16)
        if not client.set(key, token, nx=True, px=TTL * 1000):
            raise AssertionError(f"{key} is not free")
        if client.evalsha(sha, 1, key, token) != 1:
            raise AssertionError(f"{key} was not ours")

    return pair


def ours() -> Operation:
    """`latch(name, timeout=0)`, made anew for each call as in application code."""
    keys = names("ours")

    def pair() -> None:
        latch(next(keys), ttl=TTL, timeout=0).acquire().release()

    return pair


def redis_py() -> Operation:
    """`Redis.lock()`: a token, no renewal."""
    client = get_redis_connection("default")
    keys = names("redis-py")

    def pair() -> None:
        lock = client.lock(next(keys), timeout=TTL)
        if not lock.acquire(blocking=False):
            raise AssertionError(f"{lock.name} is not free")
        lock.release()

    return pair


def python_redis_lock(*, auto_renewal: bool) -> Operation:
    """`redis_lock.Lock`; with `auto_renewal` it starts a thread for each lock."""
    client = get_redis_connection("default")
    keys = names(f"python-redis-lock-{auto_renewal}")

    def pair() -> None:
        key = next(keys)
        lock = redis_lock.Lock(client, key, expire=TTL, auto_renewal=auto_renewal)
        if not lock.acquire(blocking=False):
            raise AssertionError(f"{key} is not free")
        lock.release()

    return pair
