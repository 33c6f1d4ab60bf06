"""After every test the whole database is examined, as in tests/integration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import redis

from django_latch.heartbeat import heartbeat
from tests import servers
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at
from tests.integration.until import until
from tests.waiting.crowd import BRISK, Crowd


@pytest.fixture(autouse=True)
def _sound(raw: redis.Redis, _empty: None) -> Iterator[None]:
    """Whatever a test did, every key has an end, and lists and records agree."""
    yield
    until(lambda: not heartbeat.owing)  # to a server that is gone it would be owed for ever
    audit.assert_sound(raw)


@pytest.fixture
def _brisk() -> Iterator[None]:
    """Short slices, so that a test need not wait for the usual ones."""
    with latch_settings(**BRISK):
        yield


@pytest.fixture
def connections(raw: redis.Redis) -> Iterator[Callable[[], int]]:
    """How many connections to the server the locks have now; those of this test only."""
    name = f"test-{uuid4().hex}"
    with locks_at(f"{servers.url()}?client_name={name}"):
        yield lambda: sum(client["name"] == name for client in raw.client_list())


@pytest.fixture
def crowd(raw: redis.Redis) -> Iterator[Crowd]:
    """Threads that wait for locks."""
    with Crowd(raw) as threads:
        yield threads
