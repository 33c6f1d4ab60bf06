"""After every test the whole database is examined."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.integration import audit


@pytest.fixture(autouse=True)
def _sound(request: pytest.FixtureRequest, raw: redis.Redis, _empty: None) -> Iterator[None]:
    """Whatever a test did, every key has an end and lists and records agree.

    Tests that break keys on purpose ask for `broken_keys`.
    """
    yield
    if "broken_keys" not in request.fixturenames:
        audit.assert_sound(raw)


@pytest.fixture
def broken_keys() -> None:
    """This test leaves keys behind that are not as they should be."""
