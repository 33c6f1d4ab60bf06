"""A free lock is taken and given back: what every job pays."""

from __future__ import annotations

import secrets
from itertools import cycle

import redis_lock
from django_redis import get_redis_connection

from benchmarks.actors import actors
from benchmarks.figures import Goal, Table, middle
from benchmarks.measure import Operation, Result, run
from benchmarks.peers import OURS, PYTHON_REDIS_LOCK, REDIS_PY
from django_latch import latch

#: Seconds that each lock would live.
TTL = 30
#: Names that a peer goes round, since real jobs rarely share one.
NAMES = 50
ROUNDS = 40
#: Operations in one turn of a peer.
CALLS = 100

RAW = "SET NX PX + EVALSHA"

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


def measure(effort: float) -> Table:
    """In a process of its own, since the lock of ours starts a thread."""
    with actors(1) as (actor,):
        return actor.ask(_measure, max(int(ROUNDS * effort), 4))


def _measure(rounds: int) -> Table:
    """Acquire and release; every peer uses the client and pool that django-redis gives."""
    peers = {
        RAW: raw_pair(),
        OURS: ours(),
        REDIS_PY: redis_py(),
        PYTHON_REDIS_LOCK: python_redis_lock(auto_renewal=False),
        f"{PYTHON_REDIS_LOCK}, renewed": python_redis_lock(auto_renewal=True),
    }
    results = run(peers, RAW, rounds=rounds, calls=CALLS)
    return Table(
        f"uncontended acquire + release: {rounds} rounds of {CALLS}",
        ("median", "of raw", "quartiles of it"),
        [row(name, result) for name, result in results.items()],
        [Goal(f"{OURS} / {RAW}", results[OURS].ratio, 1.3)],
        raw=results[RAW].seconds,
    )


def row(name: str, result: Result) -> tuple[str, ...]:
    """Of the table."""
    first, third = result.spread
    return name, middle(result.seconds), f"{result.ratio:.2f}", f"{first:.2f} - {third:.2f}"


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
