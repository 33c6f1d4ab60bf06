"""A row is what it says. Only scripts/contract runs this; see rows.py."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec

import redis
import redis.asyncio
import redis.connection
from redis.asyncio.connection import DefaultParser

from django_latch.core import verbs
from django_latch.store.connections import store
from django_latch.store.redis import RedisStore
from tests import servers
from tests.contract.rows import FACTORS, ROW, Row


def found(raw: redis.Redis) -> Row:
    """The row in which this test runs, from what is there."""
    info = raw.info("server")
    version = f"valkey {info['valkey_version']}" if "valkey_version" in info else ""
    version = version or f"redis {info['redis_version']}"
    at = store()
    assert isinstance(at, RedisStore)
    connection = at._connection()
    connection.connect()
    connection.send_command("HELLO")
    told = connection.read_response()
    flat = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
    connection.disconnect()
    parsers = {redis.connection.DefaultParser.__name__, DefaultParser.__name__}
    hiredis = parsers == {"_HiredisParser", "_AsyncHiredisParser"}
    assert hiredis == (find_spec("hiredis") is not None)
    return Row(
        next(name for name in FACTORS["server"] if version.startswith(f"{name}.")),
        next(name for name in FACTORS["client"] if redis.__version__.startswith(f"{name}.")),
        hiredis,
        flat[b"proto"],
        bool(servers.connections()["decode_responses"]),
    )


def test_the_row_is_what_runs(raw: redis.Redis) -> None:
    assert str(found(raw)) == os.environ[ROW]


def test_the_async_twin_speaks_the_same() -> None:
    async def main() -> int:
        at = store().twin()
        await at.call(verbs.count())
        return int(at._line._connection.protocol)

    assert f"RESP{asyncio.run(main())}" in os.environ[ROW]
