"""The servers tests talk to: real ones, on ports of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from example_project.valkey import EmbeddedValkey


@contextmanager
def valkey() -> Iterator[EmbeddedValkey]:
    """An embedded Valkey that nobody else uses."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedValkey(Path(folder)) as server:
        yield server


#: The URL that tests/settings.py points at; set by conftest before Django is set up.
URL = "LATCH_TEST_REDIS_URL"


def url(database: int = 0) -> str:
    """The URL of the test run's server."""
    return f"{os.environ[URL]}/{database}"
