"""Locks over HTTP: acquire and release, beside a view that does nothing on the same server."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from django.conf import settings

from benchmarks.figures import Goal, Table

#: Where the server's process is told its lock store and the database of its API tokens.
STORE, DATABASE = "LATCH_BENCH_STORE", "LATCH_BENCH_DATABASE"

ROUNDS = 12
#: Connections that ask at the same time, and what each does in a round.
CONNECTIONS = 8
CALLS = 40

TRIVIAL = "a trivial async view"
PAIR = "acquire + release"
OWN = "the same, with a token of one's own"

Do = Callable[["Link"], Awaitable[None]]


class Link:
    """A connection that is kept."""

    def __init__(self, token: str) -> None:
        self._headers = f"Host: x\r\nAuthorization: Bearer {token}\r\n"

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, method: str, path: str, body: object = None) -> dict[str, str]:
        """Send a request; anything but success ends the scenario."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        # Without middleware nothing says how long an answer is, so it comes in chunks.
        chunks = await self._reader.readuntil(b"\r\n0\r\n\r\n")
        told: dict[str, str] = json.loads(chunks.split(b"\r\n")[1])
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            raise AssertionError(told)
        return told

    def close(self) -> None:
        self._writer.close()


_keys = count()


async def trivial(link: Link) -> None:
    await link.ask("GET", "/trivial")


async def pair(link: Link) -> None:
    path = f"/v1/latch/bench:{next(_keys) % 50}:{id(link)}"
    taken = await link.ask("POST", path, {"ttl": 30, "timeout": 5})
    await link.ask("POST", path + "/release", {"token": taken["token"]})


async def pair_of_own(link: Link) -> None:
    path = f"/v1/latch/bench:{next(_keys) % 50}:{id(link)}"
    token = secrets.token_hex(16)
    await link.ask("POST", path, {"ttl": 30, "timeout": 5, "token": token})
    await link.ask("POST", path + "/release", {"token": token})


def measure(effort: float) -> Table:
    """One uvicorn process; each peer keeps it busy with all connections, in turns."""
    with server() as (port, token):
        rates = asyncio.run(_measure(port, token, max(int(ROUNDS * effort), 4)))
    base = rates[TRIVIAL]
    ratios = {
        name: median(one / other for one, other in zip(mine, base, strict=True))
        for name, mine in rates.items()
    }
    return Table(
        f"over HTTP, {CONNECTIONS} connections to one process: {len(base)} rounds",
        ("a second", "of trivial"),
        [(name, f"{median(mine):.0f}", f"{ratios[name]:.2f}") for name, mine in rates.items()],
        [Goal(f"{PAIR} / {TRIVIAL}", ratios[PAIR], 0.3, least=True)],
        raw=base,
    )


async def _measure(port: int, token: str, rounds: int) -> dict[str, list[float]]:
    links = [Link(token) for _ in range(CONNECTIONS)]
    await asyncio.gather(*(link.open(port) for link in links))
    peers: dict[str, Do] = {TRIVIAL: trivial, PAIR: pair, OWN: pair_of_own}
    rates: dict[str, list[float]] = {name: [] for name in peers}
    for turn in range(rounds + 1):
        for name, do in peers.items():
            begun = perf_counter()
            await asyncio.gather(*(_repeat(do, link) for link in links))
            if turn:  # the first one warms up
                rates[name].append(CONNECTIONS * CALLS / (perf_counter() - begun))
    for link in links:
        link.close()
    return rates


async def _repeat(do: Do, link: Link) -> None:
    for _ in range(CALLS):
        await do(link)


@contextmanager
def server() -> Iterator[tuple[int, str]]:
    """A uvicorn process on the scenario's store; its port, and an API token."""
    with (
        tempfile.TemporaryDirectory(prefix="latch-bench-") as folder,
        socket.create_server(("127.0.0.1", 0), backlog=64) as listener,
    ):
        env = {
            **os.environ,
            STORE: settings.CACHES["default"]["LOCATION"],
            DATABASE: str(Path(folder) / "db.sqlite3"),
        }
        prepare = [sys.executable, "-m", "benchmarks.http_project"]
        token = subprocess.run(prepare, env=env, check=True, capture_output=True, text=True)
        run = ["uvicorn", "--fd", str(listener.fileno()), "--lifespan", "off", "--no-access-log"]
        run += ["--log-level", "error", "benchmarks.http_project:application"]
        process = subprocess.Popen(
            [sys.executable, "-m", *run],
            env=env,
            pass_fds=[listener.fileno()],
        )
        try:
            yield listener.getsockname()[1], token.stdout.strip()
        finally:
            process.terminate()
            process.wait(20)
