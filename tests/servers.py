"""The servers tests talk to: real ones, on ports of their own."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from example_project.valkey import EmbeddedValkey

#: The run's server, in the process that runs pytest.
run: EmbeddedValkey

#: Where child processes of a test find the run's server.
URL = "LATCH_TEST_REDIS_URL"


@contextmanager
def valkey() -> Iterator[EmbeddedValkey]:
    """An embedded Valkey that nobody else uses."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedValkey(Path(folder)) as server:
        yield server


def start_for_run() -> None:
    """Start the run's server in the process that runs pytest; its children use the same.

    Called by tests/settings.py: pytest-django reads the settings before any conftest.
    """
    if URL in os.environ or "PYTEST_VERSION" not in os.environ:
        return
    global run
    running = ExitStack()
    run = running.enter_context(valkey())
    os.environ[URL] = run.url
    atexit.register(running.close)


def url(database: int = 0) -> str:
    """The URL of the run's server."""
    return f"{os.environ[URL]}/{database}"
