"""key=None: the same call has the same lock at sender and worker, another call another one."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from celery.result import AsyncResult
from django.contrib.auth.models import Group, User

from tests.celery import harness, trusting
from tests.celery.harness import Worker, until

#: Calls a test sends.
CALLS = 60

LEAVES: list[Callable[[random.Random], Any]] = [
    lambda r: None,
    lambda r: r.random() < 0.5,
    lambda r: r.randrange(-(10**20), 10**20),
    lambda r: r.uniform(-1e9, 1e9),
    lambda r: r.choice([math.nan, math.inf, -0.0, 0.0, 1e-300]),
    lambda r: "".join(r.choices("aé\u2028\U0001f600:{},()'\"\\\n ", k=r.randrange(12))),
    lambda r: "x" * 10_000 + str(r.random()),
    lambda r: r.randbytes(r.randrange(9)),
    lambda r: UUID(int=r.getrandbits(128)),
    lambda r: Decimal(r.randrange(10**6)) / 1000,
    lambda r: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=r.randrange(10**8)),
    lambda r: dt.date(2026, 1, 1) + dt.timedelta(days=r.randrange(10**4)),
]
ONLY_PICKLE: list[Callable[[random.Random], Any]] = [
    lambda r: {r.randrange(100) for _ in range(r.randrange(5))},
    lambda r: frozenset("abcdef"[: r.randrange(6)]),
    lambda r: User(pk=r.randrange(1, 100)),
    lambda r: Group(pk=r.randrange(1, 100)),
]


def value(r: random.Random, leaves: list[Callable[[random.Random], Any]], depth: int = 3) -> Any:
    shape = r.randrange(6) if depth else 5
    if shape == 0:
        return [value(r, leaves, depth - 1) for _ in range(r.randrange(4))]
    if shape == 1:
        return tuple(value(r, leaves, depth - 1) for _ in range(r.randrange(4)))
    if shape == 2:
        return {f"k{i}": value(r, leaves, depth - 1) for i in range(r.randrange(4))}
    return r.choice(leaves)(r)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    env = {"C_FORCE_ROOT": "1"}  # where tests run as root, Celery reads no pickle otherwise
    with harness.worker(concurrency=4, app="tests.celery.trusting", env=env) as started:
        yield started


@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_sender_and_worker_agree(worker: Worker, serializer: str):
    r = random.Random(serializer)
    leaves = LEAVES + (ONLY_PICKLE if serializer == "pickle" else [])
    keys, sent = [], []
    with Celery(set_as_current=False, broker=trusting.app.conf.broker_url) as foreign:
        for number in range(CALLS):
            args = (number, *(value(r, leaves) for _ in range(r.randrange(3))))
            kwargs = {f"n{i}": value(r, leaves) for i in range(r.randrange(3))}
            keys.append(trusting.keyed.single_flight.key(*args, **kwargs))
            # Every other one is sent by a program that knows nothing of locks.
            app = foreign if number % 2 else trusting.app
            name, more = trusting.keyed.name, {"queue": worker.queue, "serializer": serializer}
            sent.append(app.send_task(name, args, kwargs, **more))
    compare(keys, sent)


def compare(keys: list[str], sent: list[AsyncResult]) -> None:
    """The keys that calls had at their sender, with what they had in the worker."""
    assert len(set(keys)) == CALLS
    for key, one in zip(keys, sent, strict=True):
        found = trusting.app.AsyncResult(one.id)
        until(found.ready)
        assert found.get() == key


def order(r: random.Random) -> trusting.Order:
    lines = [
        trusting.Line(
            sku=r.choice("ab"), price=Decimal(r.randrange(10**6)) / 1000, tags={1, 2, 300}
        )
        for _ in range(r.randrange(3))
    ]
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=r.randrange(10**12))
    note = r.choice([None, "", "é\u2028" * 100])
    return trusting.Order(number=UUID(int=r.getrandbits(128)), at=at, lines=lines, note=note)


@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_they_agree_about_models(worker: Worker, serializer: str):
    pytest.importorskip("celery", "5.7")  # before, it sends no models
    r, mode = random.Random(serializer), "json" if serializer == "json" else "python"
    task, more = trusting.ordered, {"queue": worker.queue, "serializer": serializer}
    keys, sent = [], []
    with Celery(set_as_current=False, broker=trusting.app.conf.broker_url) as foreign:
        for number in range(CALLS):
            args = [order(r) for _ in range(r.choice([1, 1, 2]))]
            keys.append(task.single_flight.key(*args))
            if number % 2:
                plain = [one.model_dump(mode=mode) for one in args]
                sent.append(foreign.send_task(task.name, plain, **more))
            else:
                sent.append(task.apply_async(args, **more))
    compare(keys, sent)
