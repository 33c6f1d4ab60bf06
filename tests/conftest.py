"""What every test gets: a real server, and an empty database on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests import servers


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
