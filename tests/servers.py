"""The servers tests talk to: real ones, on ports of their own."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from example_project.valkey import EmbeddedValkey

#: The run's server, in the process that runs pytest.
run: EmbeddedValkey

#: Where child processes of a test find the run's server, and whose it is.
URL = "LATCH_TEST_REDIS_URL"
OWNER = "LATCH_TEST_REDIS_OWNER"


@contextmanager
def valkey() -> Iterator[EmbeddedValkey]:
    """An embedded Valkey that nobody else uses."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedValkey(Path(folder)) as server:
        yield server


def start_for_run() -> None:
    """Start the run's server in the process that runs pytest; its children use the same.

    Called by tests/settings.py: pytest-django reads the settings before any conftest. With
    pytest-xdist each worker has a server of its own.
    """
    owner = os.environ.get("PYTEST_XDIST_WORKER", "main")
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
    """The URL of the run's server."""
    return f"{os.environ[URL]}/{database}"


@cache
def private_url() -> str:
    """The URL of a second server of this process, which no worker and no other test talks to."""
    running = ExitStack()
    server = running.enter_context(valkey())
    atexit.register(running.close)
    return f"{server.url}/0"
