"""After every test the whole database is examined, as in tests/integration."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from django_latch.heartbeat import heartbeat
from django_latch.snapshots.turns import turns
from tests.integration import audit
from tests.integration.conftest import broken_keys, valkey_of_its_own  # noqa: F401
from tests.integration.until import until
from tests.snapshot.sweeps import Sweep


@pytest.fixture(autouse=True)
def _sound(request: pytest.FixtureRequest, raw: redis.Redis, _empty: None) -> Iterator[None]:
    """Whatever a test did: every key has an end, and nobody is elected any more."""
    yield
    with suppress(AssertionError):
        until(lambda: not heartbeat.owing, within=0.5)
    heartbeat._debts.clear()  # to a server that is gone they would be owed for a minute
    for thread in threading.enumerate():
        if thread.name == "django_latch-snapshot":
            thread.join(10)
    if "broken_keys" not in request.fixturenames:
        audit.assert_sound(raw)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread asks for itself, as if it were a process of its own."""
    monkeypatch.setattr(turns, "begin", lambda key, turn: turn)


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A compute that counts its runs, also those of other processes."""
    return Sweep(tmp_path / "sweeps")
