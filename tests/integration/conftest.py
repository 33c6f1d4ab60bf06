"""After every test the whole database is examined."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from django_latch.heartbeat import heartbeat
from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.integration import audit
from tests.integration.aliases import locks_at, timeouts
from tests.integration.until import until


@pytest.fixture(autouse=True)
def _sound(request: pytest.FixtureRequest, raw: redis.Redis, _empty: None) -> Iterator[None]:
    """Whatever a test did, every key has an end and lists and records agree.

    Tests that break keys on purpose ask for `broken_keys`.
    """
    yield
    until(lambda: not heartbeat.owing)  # to a server that is gone it would be owed for ever
    if "broken_keys" not in request.fixturenames:
        audit.assert_sound(raw)


@pytest.fixture
def broken_keys() -> None:
    """This test leaves keys behind that are not as they should be."""


@pytest.fixture
def valkey_of_its_own() -> Iterator[EmbeddedValkey]:
    """The locks live on a server that this test may pause or stop; answers are due in 0.5 s."""
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(0.5)):
        yield server
