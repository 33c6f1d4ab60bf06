"""hold_on_retry: nobody else has a turn between a run and its retry."""

from __future__ import annotations

import pytest

from django_latch import Latch
from tests.celery import flights
from tests.celery.harness import Label, Worker, result, until


@pytest.fixture
def worker(flights_worker: Worker) -> Worker:
    flights_worker.forget()
    return flights_worker


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def holder(task, label: Label):
    seen = Latch(f"{task.__name__}:{label}").inspect()
    return seen and seen.holder


def test_the_lock_is_kept_through_the_countdown(worker: Worker, label: Label):
    sent = send(flights.keeps, worker, str(label))
    for retries in range(3):
        assert label.next("run")["retries"] == retries
        if retries < 2:
            until(lambda: (h := holder(flights.keeps, label)) and h.owner.pid == 0)
            seen = holder(flights.keeps, label)
            assert seen.owner.task_id == sent.id
            assert 90 < seen.expires_in <= 101
            assert result(send(flights.keeps, worker, str(label), value="other")) is None
    assert result(sent) == 2
    until(lambda: holder(flights.keeps, label) is None)
    label.nothing_left()


@pytest.mark.parametrize("task", [flights.keeps_under, flights.keeps_auto])
def test_every_placement_and_autoretry(worker: Worker, label: Label, task):
    sent = send(task, worker, str(label))
    label.next("run")
    until(lambda: (h := holder(task, label)) and h.owner.pid == 0)
    assert holder(task, label).owner.task_id == sent.id
    label.next("run")
    until(lambda: holder(task, label) is None)
    until(sent.ready)
    label.nothing_left()


def test_a_retry_that_cannot_be_sent_frees_it(worker: Worker, label: Label):
    send(flights.keeps_unsent, worker, str(label))
    label.next("run")
    until(lambda: holder(flights.keeps_unsent, label) is None)


def test_a_retry_that_is_revoked_frees_it(worker: Worker, label: Label):
    sent = send(flights.keeps, worker, str(label), 2.0)
    label.next("run")
    flights.app.control.revoke(sent.id, destination=[worker.name], reply=True)
    worker.wait_for(f"freed the lock keeps:{label}")
    assert holder(flights.keeps, label) is None
