"""The store, or a server, is gone: no wrong answer, and soon."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from django_latch import inventory
from tests import servers
from tests.api.conftest import Api
from tests.api.server import serving
from tests.integration.until import until

pytestmark = pytest.mark.api

Connect = Callable[..., Api]

#: Answers every command as a broken server would.
LIAR = """
import socketserver, sys
class Liar(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            if line.startswith(b"*"):
                self.wfile.write(sys.argv[1].encode().decode("unicode_escape").encode())
with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Liar) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


def waiters(key: str) -> int:
    lock = inventory.get(key)
    return lock.waiters if lock else 0


def outage(api: Api, key: str) -> dict[str, Any]:
    """Every operation answers 503, within the connect time-out."""
    problem: dict[str, Any] = {}
    for method, path in (
        ("POST", key),
        ("GET", key),
        ("POST", f"{key}/release"),
        ("GET", f"{key}/queue"),
    ):
        answer = api.http.request(method, f"/v1/latch/{path}", json={"token": "x" * 32})
        assert answer.status_code == 503, answer.text
        assert answer.elapsed.total_seconds() < 5
        assert int(answer.headers["Retry-After"]) >= 1
        problem = answer.json()
        assert problem["code"] == "unavailable"
        assert problem["checked_at"]
        assert len(problem["error"]) < 40
    return problem


def test_l35_redis_is_down(folder: Path, connect: Connect, key: str) -> None:
    with serving(folder, CACHE_URL="redis://127.0.0.1:1/0") as running:
        assert outage(connect(running), key)["error"] == "connection"


def test_l35_a_wrong_password(folder: Path, connect: Connect, key: str) -> None:
    url = servers.url().replace("redis://", "redis://nobody:wrong@")
    with serving(folder, CACHE_URL=url) as running:
        assert outage(connect(running), key)["error"] == "auth"
        assert "wrong" not in running.log.read_text()


@pytest.mark.parametrize("reply", ["$-1\\r\\n", "-ERR broken\\r\\n", ":1\\r\\n"])
def test_l35_replies_that_are_none(folder: Path, connect: Connect, key: str, reply: str) -> None:
    liar = subprocess.Popen([sys.executable, "-c", LIAR, reply], stdout=subprocess.PIPE, text=True)
    try:
        assert liar.stdout
        port = liar.stdout.readline().strip()
        with serving(folder, CACHE_URL=f"redis://127.0.0.1:{port}/0") as running:
            outage(connect(running), key)
    finally:
        liar.kill()
        liar.communicate()


def test_l35_redis_comes_back(folder: Path, connect: Connect, key: str) -> None:
    with servers.valkey() as own, serving(folder, CACHE_URL=f"{own.url}/0") as running:
        api = connect(running)
        token = api.take(key, ttl=30)["token"]
        with redis.Redis.from_url(own.url) as client:
            client.client_pause(1500)
            slow = api.http.get(f"/v1/latch/{key}")
            assert slow.status_code in (200, 503)
        until(lambda: api.http.get(f"/v1/latch/{key}").status_code == 200)
        assert api.release(key, token).status_code == 200


def test_l35_a_broken_key_is_named(api: Api, key: str, raw: redis.Redis) -> None:
    raw.set(f"latch:1:{{00}}:R:{key}", "mine", px=60_000)
    answer = api.acquire(key)
    assert (answer.status_code, answer.json()["code"]) == (503, "corrupt")
    raw.delete(f"latch:1:{{00}}:R:{key}")
    api.take(key)


def test_the_tokens_database_is_gone(folder: Path, connect: Connect, key: str) -> None:
    empty = folder / "empty"
    empty.mkdir()
    with serving(empty) as running:
        answer = connect(running).acquire(key)
    assert (answer.status_code, answer.json()["error"]) == (503, "database")


def test_l30_the_server_is_killed(folder: Path, api: Api, connect: Connect, key: str) -> None:
    """Holders keep their leases; waiters see a broken connection, and keep their place."""

    async def waits(url: str, token: str) -> httpx.Response:
        async with httpx.AsyncClient(headers=api.http.headers, timeout=40) as client:
            body = {"ttl": 30, "timeout": 20, "token": token}
            return await client.post(f"{url}/v1/latch/{key}", json=body)

    def living() -> int:
        return len(api.http.get(f"/v1/latch/{key}/queue").json()["queue"])

    async def crash() -> None:
        with serving(folder) as doomed:
            holder = connect(doomed).take(key, ttl=30)
            first = asyncio.create_task(waits(doomed.url, "1" * 32))
            await asyncio.to_thread(until, lambda: waiters(key) == 1)
            second = asyncio.create_task(waits(str(api.http.base_url), "2" * 32))
            await asyncio.to_thread(until, lambda: waiters(key) == 2)
            doomed.kill()
            with pytest.raises(httpx.TransportError):
                await first
        assert api.look(key)["fence"] == holder["fence"], "nobody died but a server"
        await asyncio.to_thread(until, lambda: living() == 1)
        again = asyncio.create_task(waits(str(api.http.base_url), "1" * 32))
        await asyncio.to_thread(until, lambda: living() == 2)
        await asyncio.to_thread(api.release, key, holder["token"])
        granted = await again
        assert granted.status_code == 200, "in the old place, before the second"
        assert not second.done()
        await asyncio.to_thread(api.release, key, "1" * 32)
        assert (await second).json()["fence"] > granted.json()["fence"]

    asyncio.run(crash())


def test_l31_l32_the_queue_is_lost(api: Api, key: str, raw: redis.Redis) -> None:
    holder = api.take(key, ttl=30)

    async def lose() -> httpx.Response:
        async with httpx.AsyncClient(headers=api.http.headers, timeout=40) as client:
            body = {"ttl": 5, "timeout": 15}
            url = f"{api.http.base_url}/v1/latch/{key}"
            waiting = asyncio.create_task(client.post(url, json=body))
            await asyncio.to_thread(until, lambda: waiters(key) == 1)
            raw.delete(f"latch:1:{{00}}:Q:{key}", f"latch:1:{{00}}:V:{key}")
            released = await asyncio.to_thread(api.release, key, holder["token"])
            assert released.status_code == 200
            return await waiting

    answer = asyncio.run(lose())
    assert answer.status_code == 200
    assert answer.json()["fence"] > holder["fence"]
