"""What depends on the database, on each server: ``python -m tests.databases.rows``.

A server that is missing is named and left out, or is a failure where LATCH_REQUIRE_SERVICES is
set. Each run makes a database of its own and drops it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from example_project import environment
from tests import services, sql

ROOT = Path(__file__).parents[2]

#: Transactions, Celery's messages at commit, the admin's log, tokens, migrations, fixtures.
TESTS = (
    "tests/databases",
    "tests/admin/test_detail.py",
    "tests/admin/test_hostile.py",
    "tests/admin/test_model.py",
    "tests/admin/test_permissions.py",
    "tests/admin/test_release.py",
    "tests/api/test_tokens.py",
    "tests/celery/test_django.py",
    "tests/celery/test_enqueue.py::TestTransactions",
    "tests/waiting/test_commit.py",
)


@dataclass(frozen=True)
class Server:
    """A kind of server, the variable with its address, and where it is without that."""

    name: str
    variable: str
    default: str

    @property
    def url(self) -> str:
        """Where it may answer; without a database."""
        return (os.environ.get(self.variable) or self.default).rstrip("/")


SERVERS = (
    Server("PostgreSQL", "LATCH_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432"),
    Server("MariaDB", "LATCH_MARIADB_URL", "mariadb://root@127.0.0.1:3306"),
)


def connect(url: str) -> Any:
    """A plain connection, with autocommit.

    Raises:
        Exception: the driver's own, if nothing answers or the user may not enter.
    """
    found = environment.database(f"{url}/postgres")
    where = {"host": found["HOST"], "port": int(found["PORT"] or 0), "user": found["USER"]}
    if found["ENGINE"].endswith("mysql"):
        import pymysql

        return pymysql.connect(**where, password=found["PASSWORD"], autocommit=True)
    import psycopg

    password = found["PASSWORD"] or None
    return psycopg.connect(**where, password=password, dbname="postgres", autocommit=True)


def problem(server: Server) -> str:
    """Why this server cannot be used; empty if it can."""
    try:
        connect(server.url).close()
    except Exception as error:  # noqa: BLE001 - each driver has its own
        at = urlsplit(server.url)
        where = f"{at.hostname}:{at.port}"  # not the URL, which may hold a password
        return f"{type(error).__name__} at {where}; {server.variable} may say where it is"
    return ""


@contextmanager
def database(server: Server) -> Iterator[str]:
    """The URL of a database that does not exist yet, and does not exist afterwards."""
    name = f"latch_test_{secrets.token_hex(4)}"
    try:
        yield f"{server.url}/{name}"
    finally:
        with connect(server.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")


def run(server: Server, arguments: list[str]) -> int:
    """Run the tests on it; returns pytest's exit code."""
    with database(server) as url:
        # Each with what failed last on it.
        cache = f"cache_dir=.pytest_cache/{server.name}"
        command = ["-m", "pytest", "-m", "not exits", "-o", cache, *TESTS, *arguments]
        return subprocess.run(
            [sys.executable, *command], cwd=ROOT, env={**os.environ, sql.URL: url}, check=False
        ).returncode


def main(arguments: list[str], tell: Callable[[str], object] = print) -> int:
    """All servers; the exit code is 0 when nothing has failed."""
    results: dict[str, str] = {}
    for server in SERVERS:
        if why := problem(server):
            results[server.name] = f"{'FAILED' if services.REQUIRED else 'NOT RUN'}: {why}"
            continue
        tell(f"\n--- {server.name}")
        code = run(server, arguments)
        results[server.name] = f"FAILED: pytest's exit code is {code}" if code else "passed"
    tell("\n" + "\n".join(f"{name}: {result}" for name, result in results.items()))
    return int(any(result.startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
