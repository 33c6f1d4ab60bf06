"""on_conflict="wait", limit, and copies of messages beside both."""

from __future__ import annotations

import pytest

from django_latch import LatchTimeout
from django_latch.celery.header import HEADER
from tests.celery import flights
from tests.celery.harness import Label, Worker, result, until


@pytest.fixture
def worker(flights_worker: Worker) -> Worker:
    flights_worker.forget()
    return flights_worker


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def waiters(task, label: Label) -> int:
    seen = task.single_flight.lock(str(label)).inspect()
    return seen.waiters if seen else 0


def test_waiting_is_first_come_first_served(worker: Worker, label: Label):
    sent = []
    for value in range(4):
        sent.append(send(flights.waiting, worker, str(label), value))
        if value:
            until(lambda value=value: waiters(flights.waiting, label) == value)
        else:
            label.next("run")
    order = []
    for value in range(4):
        label.open()
        if value < 3:
            order.append(label.next("run")["value"])
    assert order == [1, 2, 3]
    assert [result(one) for one in sent] == ["done"] * 4


def test_what_follows_the_timeout(worker: Worker, label: Label):
    send(flights.waiting, worker, str(label))
    label.next("run")
    with pytest.raises(LatchTimeout) as caught:
        result(send(flights.waiting_raise, worker, str(label)))
    assert 0.3 <= caught.value.waited < 2.3
    assert caught.value.holder["task"] == flights.waiting.name
    assert result(send(flights.waiting_skip, worker, str(label))) == "no"
    label.open()


def test_a_copy_that_waited_in_the_queue_does_not_run_after_all(worker: Worker, label: Label):
    sent = send(flights.waiting_late, worker, str(label))
    headers = label.next("start")["headers"]
    copy = {"task_id": sent.id, "headers": {HEADER: headers[HEADER]}}
    send(flights.waiting_late, worker, str(label), **copy)
    until(lambda: waiters(flights.waiting_late, label) == 1)
    label.open()
    label.next("end")
    worker.wait_for("another copy of this message has done the work")
    assert result(sent) == "done"
    label.nothing_left()


def test_limit(worker: Worker, label: Label):
    first, second = (send(flights.pair, worker, str(label)) for _ in range(2))
    label.next("start")
    label.next("start")
    assert result(send(flights.pair, worker, str(label))) is None
    label.open(2)
    assert result(first) == result(second) == "done"


def test_two_permits_are_not_for_two_copies_of_one_message(worker: Worker, label: Label):
    sent = send(flights.pair_late, worker, str(label))
    headers = label.next("start")["headers"]
    copy = {"task_id": sent.id, "headers": {HEADER: headers[HEADER]}}
    send(flights.pair_late, worker, str(label), **copy)
    worker.wait_for("pair_late: sent again for in")
    other = send(flights.pair_late, worker, str(label))
    label.next("start")
    label.open(2)
    assert result(sent) == result(other) == "done"
    worker.wait_for("another copy of this message has done the work")
    assert [label.next("end")["what"] for _ in range(2)] == ["end"] * 2
    label.nothing_left()
