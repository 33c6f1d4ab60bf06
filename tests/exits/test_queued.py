"""A job that holds its key while it is queued, and never gets to run."""

from __future__ import annotations

import time

import pytest
from django.db import transaction
from kombu import Connection
from kombu.exceptions import OperationalError

from tests.celery.harness import Label, until
from tests.exits import app
from tests.exits.cell import AT_ONCE, SLACK, Bound, Cell, exits
from tests.exits.columns import POOLS

QUEUED = ("enqueue", "both")
#: Nobody tells: the key is free when the queued job's own TTL is over.
ENQUEUE_TTL = Bound("enqueue_ttl", app.QUEUED - 0.5, app.QUEUED + 2)
#: Celery stores first that a job is revoked, then acknowledges its message, which takes up to a
#: second on Redis, and only then tells us.
TOLD = Bound(AT_ONCE.name, 0, 1 + SLACK)


@exits("success", *POOLS, at=("enqueue",))
def test_free_when_the_run_starts(cell: Cell) -> None:
    cell.send()
    event = cell.started()
    cell.free(float(event["at"]), AT_ONCE)
    cell.go()
    cell.ended()


@exits("revoked before it is received", *POOLS, at=QUEUED)
def test_revoked_before_received(cell: Cell) -> None:
    sent = cell.send(queue=cell.parked)
    assert cell.held()
    cell.revoke(sent)
    cell.unpark()
    until(lambda: sent.state == "REVOKED")
    cell.free(time.time(), TOLD)


# Solo reads neither messages nor commands while it works; threads and gevent run it all the same.
@exits("revoked while it waits in the worker", "prefork", at=QUEUED)
def test_revoked_while_prefetched(cell: Cell, other: Label) -> None:
    with cell.own_worker(concurrency=1) as worker:
        cell.use(worker)
        cell.send(label=other)
        other.next("start")
        sent = cell.send()
        assert cell.held()
        worker.wait_for(f"[{sent.id}] received")
        cell.revoke(sent)
        other.open()
        other.next("end")
        until(lambda: sent.state == "REVOKED")
        cell.free(time.time(), AT_ONCE)


@exits("revoked while it waits for its ETA: at the ETA", *POOLS, at=QUEUED)
def test_revoked_before_its_eta(cell: Cell) -> None:
    sent = cell.send(countdown=2)
    eta = time.time() + 2
    cell.worker.wait_for(f"[{sent.id}] received")
    cell.revoke(sent)
    assert cell.held()
    cell.free(eta, Bound("at the ETA", -0.5, 2))


@exits("expired, told by the worker", *POOLS, at=QUEUED, only="redis")
def test_expired(cell: Cell) -> None:
    sent = cell.send(queue=cell.parked, expires=1)
    expiry = time.time() + 1
    until(lambda: time.time() > expiry)
    cell.unpark()
    until(lambda: sent.state == "REVOKED")
    cell.free(time.time(), AT_ONCE)


@exits("expired, dropped by the broker", "prefork", at=QUEUED, only="rabbitmq")
def test_expired_in_the_broker(cell: Cell) -> None:
    cell.send(queue=cell.parked, expires=1)
    cell.free(time.time(), Bound("its expiry and 5 s", 5.5, 8))


@exits("purged, or its queue deleted", "prefork", at=QUEUED)
def test_purged(cell: Cell) -> None:
    cell.send(queue=cell.parked)
    sent = time.time()
    with cell.connection() as connection:
        assert connection.default_channel.queue_purge(cell.parked) == 1
    cell.free(sent, ENQUEUE_TTL)


@exits("the broker refuses the message", "prefork", at=QUEUED)
def test_refused(cell: Cell) -> None:
    with pytest.raises(OperationalError), Connection("redis://127.0.0.1:1") as nowhere:
        cell.send(connection=nowhere, retry=False)
    cell.free(time.time(), AT_ONCE)


@pytest.mark.django_db(transaction=True)
@exits("the transaction is rolled back", "prefork", at=QUEUED)
def test_rolled_back(cell: Cell) -> None:
    with transaction.atomic():
        cell.task().delay_on_commit(str(cell.label))
        assert not cell.held()
        transaction.set_rollback(True)
    cell.free(time.time(), AT_ONCE)
