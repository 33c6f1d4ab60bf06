"""What every test gets: a real server, and an empty database on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis

from tests import servers

if TYPE_CHECKING:
    from example_project.valkey import EmbeddedValkey


@pytest.fixture(scope="session")
def valkey() -> EmbeddedValkey:
    """The server of this run. To stop or pause one, start another: `servers.valkey()`."""
    if servers.run is None:
        pytest.skip("concerns the whole server, and the one given may serve others")
    return servers.run


@pytest.fixture
def raw() -> Iterator[redis.Redis]:
    """A plain client on the database of the locks."""
    client = redis.Redis.from_url(servers.url(), decode_responses=True)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def _empty(raw: redis.Redis) -> None:
    """Every test begins with an empty database."""
    raw.flushdb()
