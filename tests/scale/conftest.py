"""Many locks, leases and waiters at once: `make scale`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.admin.conftest import client, client_of  # noqa: F401

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.scale)


class Stopwatch:
    """Prints what was measured, past pytest's capture."""

    def __init__(self, raw: redis.Redis) -> None:
        self._raw = raw

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Time a block, and the longest that the server was busy with one command in it."""
        self._raw.slowlog_reset()
        begun = time.perf_counter()
        yield
        took = time.perf_counter() - begun
        slowest = max((entry["duration"] for entry in self._raw.slowlog_get(128)), default=0)
        self.say(f"{what}: {took:.3g} s; longest command {slowest / 1000:.3g} ms")

    @staticmethod
    def say(line: str) -> None:
        sys.__stdout__.write(f"\n  {line}")  # type: ignore[union-attr]


@pytest.fixture
def measure(raw: redis.Redis) -> Iterator[Stopwatch]:
    usual = raw.config_get("slowlog-log-slower-than")["slowlog-log-slower-than"]
    raw.config_set("slowlog-log-slower-than", 1000)
    yield Stopwatch(raw)
    raw.config_set("slowlog-log-slower-than", usual)


@pytest.fixture
def commands(raw: redis.Redis) -> Callable[[], int]:
    """How many commands the server has run."""
    return lambda: int(raw.info("stats")["total_commands_processed"])
