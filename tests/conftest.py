"""What every test gets: a real server, and an empty database on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis

from tests import servers

if TYPE_CHECKING:
    from example_project.valkey import EmbeddedValkey


def pytest_configure(config: pytest.Config) -> None:
    """Start the server before Django reads its settings."""
    running = servers.valkey()
    server = running.__enter__()
    os.environ[servers.URL] = server.url
    config.stash[SERVER] = server
    config.add_cleanup(lambda: running.__exit__(None, None, None))


SERVER: pytest.StashKey[EmbeddedValkey] = pytest.StashKey()


@pytest.fixture(scope="session")
def valkey(pytestconfig: pytest.Config) -> EmbeddedValkey:
    """The server of this test run. To stop or pause it, start another: `servers.valkey()`."""
    return pytestconfig.stash[SERVER]


@pytest.fixture
def raw(valkey: EmbeddedValkey) -> Iterator[redis.Redis]:
    """A plain client on the database of the locks."""
    client = redis.Redis.from_url(servers.url(), decode_responses=True)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def _empty(raw: redis.Redis) -> None:
    """Every test begins with an empty database."""
    raw.flushdb()
