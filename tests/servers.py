"""The servers tests talk to: real ones, on ports of their own."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from example_project.valkey import EmbeddedValkey

#: The run's server, in the process that runs pytest; None where one is given.
run: EmbeddedValkey | None = None

#: Where child processes of a test find the run's server, and whose it is.
URL = "LATCH_TEST_REDIS_URL"
OWNER = "LATCH_TEST_REDIS_OWNER"

BACKEND = "django_redis.cache.RedisCache"

#: Nothing answers there.
NOWHERE = "redis://127.0.0.1:1"

#: The databases of a given server that tests may empty, one for each worker of pytest-xdist; and
#: the one of this worker.
DATABASES = "LATCH_TEST_DATABASES"
DATABASE = "LATCH_TEST_DATABASE"

#: The path of a server to start in place of Valkey.
BINARY = "LATCH_TEST_SERVER"

#: Further arguments of every connection of the locks, as JSON.
CONNECTIONS = "LATCH_TEST_CONNECTIONS"


@contextmanager
def valkey() -> Iterator[EmbeddedValkey]:
    """An embedded Valkey, or the run's other kind of server, that nobody else uses."""
    binary = Path(os.environ[BINARY]) if BINARY in os.environ else None
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedValkey(Path(folder), binary=binary) as server,
    ):
        yield server


def alias(url: str, **more: Any) -> dict[str, Any]:
    """An entry of CACHES for the locks, with the run's CONNECTIONS."""
    options = dict(more.pop("OPTIONS", {}))
    kwargs = {**connections(), **options.get("CONNECTION_POOL_KWARGS", {})}
    if kwargs:
        options["CONNECTION_POOL_KWARGS"] = kwargs
    return {
        "BACKEND": BACKEND,
        "LOCATION": url,
        "OPTIONS": options,
        **more,
    }


def connections() -> dict[str, Any]:
    """Arguments for the connections of the locks."""
    given: dict[str, Any] = json.loads(os.environ.get(CONNECTIONS, "{}"))
    return given


def start_for_run() -> None:
    """Start the run's server in the process that runs pytest; its children use the same.

    Called by tests/settings.py: pytest-django reads the settings before any conftest. With
    pytest-xdist each worker has a server of its own.
    """
    owner = os.environ.get("PYTEST_XDIST_WORKER", "main")
    if DATABASES in os.environ and owner != "main":
        databases = os.environ[DATABASES].split(",")
        os.environ[DATABASE] = databases[int(owner.removeprefix("gw"))]
    given = URL in os.environ and OWNER not in os.environ  # a server of the caller's choice
    if given or os.environ.get(OWNER) == owner or "PYTEST_VERSION" not in os.environ:
        return
    global run
    os.environ[OWNER] = owner
    running = ExitStack()
    run = running.enter_context(valkey())
    os.environ[URL] = run.url
    atexit.register(running.close)


def url(database: int = 0) -> str:
    """The URL of the run's server.

    Raises:
        RuntimeError: of a given server the test may have one database only.
    """
    own = os.environ.get(DATABASE)
    if own and database:
        raise RuntimeError(f"a test that needs database {database} cannot run on a given server")
    # A type checker reads the settings too, without a server.
    return f"{os.environ.get(URL, NOWHERE)}/{own or database}"


@cache
def private_url() -> str:
    """The URL of a second server of this process, which no worker and no other test talks to.

    Where a server is given, it is that one: one database must do.
    """
    if DATABASE in os.environ:
        return url()
    running = ExitStack()
    server = running.enter_context(valkey())
    atexit.register(running.close)
    return f"{server.url}/0"
