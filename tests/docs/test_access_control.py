"""The access control list of the documentation is enough for everything, and for nothing else."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout

import pytest
import redis
from pytest_django import Settings

from django_latch import (
    LatchNotHeld,
    LatchTimeout,
    LatchUnavailable,
    inventory,
    latch,
    snapshot,
)
from django_latch.snapshots import listing
from django_latch.stale import clear_stale
from example_project.valkey import EmbeddedValkey
from tests.docs.pages import DOCS, code_blocks

USER = "latch"
CLEARING = ("+scan", "+unlink")


@pytest.fixture
def password(valkey: EmbeddedValkey, raw: redis.Redis, settings: Settings) -> Iterator[str]:
    """Use the locks as the documented user."""
    (block,) = code_blocks(DOCS / "reference/redis.md", "text")
    command, verb, name, *rules = block.split()
    assert (command, verb, name) == ("ACL", "SETUSER", USER)
    secret = secrets.token_hex(8)
    rules = [rule.replace("PASSWORD", secret) for rule in rules]
    raw.execute_command("ACL", "SETUSER", USER, "reset", *rules)
    url = f"redis://{USER}:{secret}@127.0.0.1:{valkey.port}/0"
    locks = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url}
    settings.CACHES = {**settings.CACHES, "locks": locks}
    yield secret
    raw.execute_command("ACL", "DELUSER", USER)


@pytest.mark.usefixtures("password")
def test_it_is_enough(raw: redis.Redis) -> None:
    raw.script_flush()
    with latch("a", timeout=0) as lease:
        lease.renew()
        with pytest.raises(LatchTimeout):
            latch("a", timeout=0.1).acquire()
        assert inventory.count() == 1
        assert [lock.name for lock in inventory.page(0, 10, reverse=True)] == ["a"]
    token = latch("b", timeout=0).acquire().detach()
    lease = latch("b").adopt(token)
    inventory.clear(
        "b", fence=lease.fence, fingerprint=lease.fingerprint, reason="test", actor="test"
    )
    with pytest.raises(LatchNotHeld):
        lease.release()
    with pytest.raises(LatchUnavailable):
        clear_stale(actor="test")
    raw.execute_command("ACL", "SETUSER", USER, *CLEARING)
    raw.rpush("latch:1:{00}:R:c", "not a hash")
    assert [cleared.what for cleared in clear_stale(actor="test")] == ["repaired"]


@pytest.mark.usefixtures("password")
def test_it_is_enough_for_snapshots(raw: redis.Redis) -> None:
    raw.script_flush()
    shared = snapshot("health", fresh_for=60, wait=10)
    begun, go = threading.Event(), threading.Event()

    def compute() -> int:
        begun.set()
        assert go.wait(10)
        return 7

    async def wait() -> object:
        return await shared.aget(compute)

    with ThreadPoolExecutor(3) as pool:
        leader = pool.submit(shared.get, compute)
        assert begun.wait(10)
        waiters = [pool.submit(shared.get, compute), pool.submit(asyncio.run, wait())]
        with pytest.raises(FutureTimeout):
            waiters[0].result(0.3)
        go.set()
        assert {one.result(10) for one in (leader, *waiters)} == {7}
    assert [one.name for one in listing.listed(9)] == ["health"]
    with pytest.raises(ZeroDivisionError):
        snapshot("other", lambda: 1 / 0)
    shared.invalidate()
    assert shared.peek().state == "miss"


def test_it_opens_nothing_else(password: str, valkey: EmbeddedValkey) -> None:
    with redis.Redis(port=valkey.port, username=USER, password=password) as client:
        for command in (("GET", "other"), ("FLUSHDB",), ("KEYS", "*"), ("CONFIG", "GET", "*")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)
