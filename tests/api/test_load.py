"""Many clients wait in one process; one of two processes is killed."""

from __future__ import annotations

import asyncio
import re
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from django_latch import inventory
from django_latch.ainventory import aqueue
from tests.api.server import Server, serving
from tests.api.wire import Asking, ask, call
from tests.integration.until import until

pytestmark = pytest.mark.api

WIDE = {"HTTP": {"MAX_WAIT": 120, "MAX_LOCKS": 10_000, "MAX_WAITS": 10_000}}


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """A socket for each client, here and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def waiters(keys: list[str]) -> int:
    return sum(lock.waiters for key in keys if (lock := inventory.get(key)))


def memory(server: Server) -> int:
    """Resident memory in kB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0])


def test_a_thousand_wait_in_one_process(
    folder: Path, token: str, key: str, raw: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [f"{key}:{n}" for n in range(10)]

    async def one(url: str, name: str) -> float:
        status, taken = await call(url, token, name, ttl=30, timeout=100)
        assert status == 200, taken
        status, _ = await call(url, token, f"{name}/release", token=taken["token"])
        assert status == 200
        return float(taken["waited"])

    async def crowd(server: Server) -> None:
        held = {name: (await call(server.url, token, name, ttl=100))[1]["token"] for name in keys}
        before, connections = memory(server), len(raw.client_list())
        tasks = [asyncio.create_task(one(server.url, name)) for name in keys for _ in range(90)]
        goners = [await ask(server.url, token, name, ttl=30, timeout=100) for name in keys * 10]
        await asyncio.to_thread(until, lambda: waiters(keys) == 1000, 60)
        grown = memory(server) - before
        with capsys.disabled():
            sys.stdout.write(f"\n1,000 waiting: {grown / 1000:.1f} kB each, {before} kB before\n")
        assert len(raw.client_list()) - connections <= 4
        assert grown < 200_000
        for goner in goners:
            goner.close()
        await asyncio.to_thread(until, lambda: waiters(keys) == 900, 10)
        for name, secret in held.items():
            await call(server.url, token, f"{name}/release", token=secret)
        assert len(await asyncio.gather(*tasks)) == 900

    with serving(folder, **WIDE) as server:
        asyncio.run(crowd(server))
    assert [inventory.get(name) for name in keys] == [None] * 10, "no ghost, no orphan"


class Crowd:
    """200 clients that wait for 20 keys, and the order in which they are served."""

    def __init__(self, token: str, key: str) -> None:
        self.token = token
        self.keys = [f"{key}:{n}" for n in range(20)]
        self.order: dict[str, list[int]] = defaultdict(list)
        self.tasks: list[asyncio.Task[None]] = []

    async def post(self, server: Server, path: str, **body: Any) -> dict[str, Any]:
        status, answer = await call(server.url, self.token, path, **body)
        assert status == 200, answer
        return answer

    async def enter(self, server: Server, name: str, number: int) -> Asking:
        token = f"{name}:{number}".replace(":", "_").rjust(40, "0")
        return await ask(server.url, self.token, name, ttl=60, timeout=100, token=token)

    def serve(self, server: Server, name: str, number: int, asking: Asking) -> None:
        async def served() -> None:
            status, taken = await asking.answer()
            assert status == 200, taken
            self.order[name].append(number)
            await self.post(server, f"{name}/release", token=taken["token"])

        self.tasks.append(asyncio.create_task(served()))

    async def until_living(self, count: int) -> None:
        """Until so many are seen in the queues, without those that have gone silent."""

        def living() -> bool:
            return sum(len(asyncio.run(aqueue(name, 100))) for name in self.keys) == count

        await asyncio.to_thread(until, living, 20)


async def crash(crowd: Crowd, doomed: Server, other: Server) -> None:
    keys = crowd.keys
    held = {name: await crowd.post(other, name, ttl=100) for name in keys}
    lost = []
    for number in range(10):
        for name in keys:
            if number % 2:
                lost.append((name, number, await crowd.enter(doomed, name, number)))
            else:
                crowd.serve(other, name, number, await crowd.enter(other, name, number))
        await asyncio.to_thread(until, lambda n=number: waiters(keys) == 20 * (n + 1), 20)
    doomed.kill()
    for _, _, asking in lost:
        with pytest.raises(ConnectionError):
            await asking.answer()
    await crowd.until_living(100)
    for name, number, _ in lost:
        crowd.serve(other, name, number, await crowd.enter(other, name, number))
    await crowd.until_living(200)
    for name, taken in held.items():
        await crowd.post(other, f"{name}/release", token=taken["token"])
    await asyncio.gather(*crowd.tasks)


def test_one_of_two_servers_is_killed(folder: Path, token: str, key: str) -> None:
    """Half of the clients lose their server, ask the other one, and keep their places."""
    crowd = Crowd(token, key)
    with serving(folder, **WIDE) as doomed, serving(folder, **WIDE) as other:
        asyncio.run(crash(crowd, doomed, other))
    assert {name: crowd.order[name] for name in crowd.keys} == {
        name: list(range(10)) for name in crowd.keys
    }
    assert [inventory.get(name) for name in crowd.keys] == [None] * 20, "no orphan"
