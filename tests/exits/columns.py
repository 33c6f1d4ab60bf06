"""Columns of the table: a pool and a broker each."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from kombu import Connection

from tests import servers
from tests.celery import harness
from tests.exits.app import CONF

#: Where RabbitMQ is looked for, and the variable that names another place.
RABBITMQ = os.environ.get("LATCH_TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672")
POOLS = ("prefork", "threads", "solo", "gevent")

#: A database for workers that believe a message lost after 5 seconds: they give out again what
#: any worker of their broker has in hand.
HASTY = 9
HASTE = {
    "visibility_timeout": 5,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}


@dataclass(frozen=True)
class Column:
    """A pool that gets its messages from a broker."""

    pool: str
    broker: str = "redis"

    def __str__(self) -> str:
        return f"{self.pool}-{self.broker}"

    def url(self, *, hasty: bool = False) -> str:
        """The broker's URL; `hasty`: where a message counts as lost after 5 seconds."""
        if self.broker == "rabbitmq":
            return RABBITMQ  # which knows at once
        return servers.url(HASTY if hasty else harness.BROKER)

    def require(self) -> None:
        """Skip the test where the column has no ground to stand on; in CI, fail."""
        if self.broker == "rabbitmq" and (problem := rabbitmq_problem()):
            if os.environ.get("CI") == "true":
                pytest.fail(problem)
            pytest.skip(problem)
        if self.pool == "gevent" and find_spec("gevent") is None:
            pytest.skip("gevent is not installed")


@cache
def rabbitmq_problem() -> str:
    """Why RabbitMQ cannot be used; empty if it can."""
    address = urlsplit(RABBITMQ)
    try:
        with socket.create_connection((address.hostname, address.port or 5672), timeout=2) as line:
            line.settimeout(2)
            line.sendall(b"AMQP\x00\x00\x09\x01")
            if line.recv(1) != b"\x01":
                return f"what answers at {address.hostname}:{address.port} is no RabbitMQ"
    except OSError as error:
        return f"no RabbitMQ at {address.hostname}:{address.port}: {error}"
    return ""


def columns(*pools: str) -> tuple[Column, ...]:
    """The columns of these pools: all on Redis, and prefork on RabbitMQ as well.

    With LATCH_EXITS_FULL set, every pool on both brokers.
    """
    full = bool(os.environ.get("LATCH_EXITS_FULL"))
    more = pools if full else [pool for pool in pools if pool == "prefork"]
    return (*map(Column, pools), *(Column(pool, "rabbitmq") for pool in more))


def options(
    column: Column, conf: dict[str, Any] | None = None, *, hasty: bool = False
) -> dict[str, Any]:
    """What `harness.worker` is told for a worker of a column.

    Parameters:
        column: the worker's column.
        conf: more Celery settings.
        hasty: whether it believes messages lost soon.
    """
    broker: dict[str, Any] = {"broker_url": column.url(hasty=hasty)}
    if hasty and column.broker == "redis":
        broker["broker_transport_options"] = HASTE
    return {
        "app": "tests.exits.app",
        "pool": column.pool,
        "concurrency": 1 if column.pool == "solo" else 2,
        "env": {CONF: json.dumps({**broker, **(conf or {})})},
    }


@contextmanager
def serving(column: Column, queue: str | None = None, **more: Any) -> Iterator[harness.Worker]:
    """A worker that is ready, and no queue of it left behind in RabbitMQ.

    Parameters:
        column: its column.
        queue: its queue, if not a new one.
        more: for `harness.worker`.
    """
    name = queue or f"q{uuid4().hex[:8]}"
    try:
        with harness.worker(name, **more) as worker:
            yield worker
    finally:
        forget(column, name)


def forget(column: Column, queue: str) -> None:
    """Delete a queue of RabbitMQ; the Redis of a test run ends with it."""
    if column.broker == "rabbitmq":
        with Connection(RABBITMQ) as connection:
            connection.default_channel.queue_delete(queue)


class Workers:
    """One worker for each column, started when it is first asked for and shared."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[Column, harness.Worker] = {}

    def __getitem__(self, column: Column) -> harness.Worker:
        found = self._started.get(column)
        if found is None or found.process.poll() is not None:
            found = self._stack.enter_context(serving(column, **options(column)))
            self._started[column] = found
        return found

    @classmethod
    def session(cls) -> Iterator[Workers]:
        """All workers of a test session; they end with it."""
        workers = cls()
        with workers._stack:
            yield workers
            for worker in workers._started.values():
                if worker.process.poll() is None:
                    worker.process.terminate()  # all at once, not one after the other
