"""Computes in a Celery worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from kombu.exceptions import OperationalError

import tests.celery.app
from django_latch import LatchComputeFailed, snapshot
from django_latch.snapshots.description import store_name
from django_latch.tasks import refresh_snapshot
from tests.celery import harness
from tests.celery.conftest import label  # noqa: F401
from tests.celery.harness import Label, Worker
from tests.integration import audit
from tests.integration.until import until
from tests.snapshot import shop
from tests.snapshot.sweeps import call, together


@pytest.fixture(scope="module")
def shop_worker() -> Iterator[Worker]:
    with harness.worker(concurrency=2, app="tests.snapshot.shop") as started:
        yield started


@pytest.fixture(autouse=True)
def worker(shop_worker: Worker) -> Iterator[Worker]:
    shop_worker.forget()
    shop.app.conf.task_default_queue = shop_worker.queue
    for app in (shop.app, tests.celery.app.app):  # for other threads, too
        app.set_default()
        app.set_current()
        if app is shop.app:
            yield shop_worker


def test_s5_the_worker_computes_with_the_election_of_the_caller(
    raw: redis.Redis,
    label: Label,  # noqa: F811
) -> None:
    name = store_name(f"shop:{label}", 1)
    callers = call(together, 5, shop.sweep, str(label), 7)
    began = label.next("sweep")
    (record,) = audit.records(raw, name).values()
    assert record.fence == began["fence"], "taken over: the lease is the worker's"
    assert record.lease == 10_000
    label.open()
    assert callers.result(20) == [7] * 5
    label.next("swept")
    report = shop.sweep.peek(str(label))
    assert (report.value, report.fence) == (7, began["fence"])
    audit.assert_free(raw, name)
    label.nothing_left()


def test_s5_a_stale_value_is_given_at_once(raw: redis.Redis, label: Label) -> None:  # noqa: F811
    name = store_name(f"shop:{label}", 1)
    label.open()
    assert shop.sweep(str(label), 1) == 1
    label.next("sweep")
    label.next("swept")
    facts = raw.hget(audit.key("S", name), "m").split("|")
    facts[2] = facts[1]
    raw.hset(audit.key("S", name), "m", "|".join(facts))
    assert shop.sweep.report(str(label), 2).outcome == "stale"
    label.next("sweep")
    assert shop.sweep(str(label), 3) == 1
    label.open()
    label.next("swept")
    until(lambda: shop.sweep.peek(str(label)).value == 2)


def test_a_copy_of_the_message_computes_nothing(
    worker: Worker,
    label: Label,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = refresh_snapshot.apply_async

    def twice(**options: object) -> None:
        send(**options)
        send(**options)

    monkeypatch.setattr(refresh_snapshot._get_current_object(), "apply_async", twice)
    label.open(2)
    assert shop.sweep(str(label)) == 1
    worker.wait_for("is not computed for fence")
    label.next("sweep")
    label.next("swept")
    label.nothing_left()


def test_no_monitor_is_shown_the_token(
    label: Label,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[dict[str, Any]] = []
    send = refresh_snapshot.apply_async

    def keep(**options: Any) -> None:
        sent.append(options)
        send(**options)

    monkeypatch.setattr(refresh_snapshot._get_current_object(), "apply_async", keep)
    label.open()
    shop.sweep(str(label))
    (options,) = sent
    token = options["kwargs"]["token"]
    assert len(token) == 32
    assert token not in options["kwargsrepr"]
    assert str(label) in options["kwargsrepr"]


def test_an_error_of_the_worker_is_remembered(raw: redis.Redis, label: Label) -> None:  # noqa: F811
    with pytest.raises(LatchComputeFailed, match="ValueError: the shop is closed"):
        shop.broken(str(label))
    label.next("sweep")
    audit.assert_free(raw, store_name(f"broken:{label}", 1))


def test_an_async_function(label: Label) -> None:  # noqa: F811
    label.open()
    assert asyncio.run(_ask(str(label))) == 5
    label.next("sweep")


async def _ask(name: str) -> object:
    return await shop.asweep(name, 5)


def test_a_message_that_cannot_be_sent_frees_the_lock(
    raw: redis.Redis,
    label: Label,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**options: object) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(refresh_snapshot._get_current_object(), "apply_async", refuse)
    with pytest.raises(OperationalError):
        shop.sweep(str(label))
    audit.assert_free(raw, store_name(f"shop:{label}", 1))
    assert shop.sweep.peek(str(label)).error == "OperationalError: no broker"


def test_a_function_that_the_worker_has_not_is_an_error_that_is_remembered(
    raw: redis.Redis,
    label: Label,  # noqa: F811
) -> None:
    def newer(label: str) -> int:
        raise AssertionError

    newer.__module__, newer.__qualname__ = shop.__name__, "newer"
    late = snapshot("newer:{label}", wait=10, on_error="raise", refresh="celery")(newer)
    with pytest.raises(LatchComputeFailed, match="newer is not a function decorated"):
        late(str(label))
    audit.assert_free(raw, store_name(f"newer:{label}", 1))
