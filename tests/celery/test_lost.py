"""A run whose own heartbeat stands still, or whose lock is lost."""

from __future__ import annotations

import os
import signal

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from django_latch import Latch, LatchTimeout, inventory
from tests.celery import flights
from tests.celery.harness import Label, Worker, result

#: Three times the lease of 1.5 s.
LONG = 4.5


@pytest.fixture
def worker(flights_worker: Worker) -> Worker:
    flights_worker.forget()
    return flights_worker


def send(task, worker: Worker, *args):
    return task.apply_async(args, queue=worker.queue)


def test_a_long_call_into_c_loses_the_lock_and_is_told(worker: Worker, label: Label):
    sent = send(flights.greedy, worker, str(label), LONG)
    start = label.next("start")
    with Latch(f"greedy:{label}", timeout=10) as lease:
        assert lease.fence > start["fence"]
        assert label.next("end")["lost"] in ("paused", "expired")
        worker.wait_for("was lost: ")
        lease.ensure_held()
    assert result(sent) in ("paused", "expired")


def test_the_parent_keeps_it(worker: Worker, label: Label):
    sent = send(flights.greedy_kept, worker, str(label), LONG)
    label.next("start")
    with pytest.raises(LatchTimeout):
        Latch(f"greedy_kept:{label}", timeout=LONG - 1).acquire()
    assert label.next("end")["lost"] is None
    assert result(sent) == "kept"
    with Latch(f"greedy_kept:{label}", timeout=0):
        pass


def test_what_the_parent_keeps_ends_with_the_child(worker: Worker, label: Label):
    send(flights.greedy_kept, worker, str(label), 30)
    start = label.next("start")
    os.kill(start["pid"], signal.SIGKILL)
    with Latch(f"greedy_kept:{label}", timeout=1.5 + 2):
        pass


def clear(name: str) -> None:
    """Free a lock as an operator does."""
    holder = inventory.get(name).holder
    inventory.clear(
        name, fence=holder.fence, fingerprint=holder.fingerprint, reason="test", actor="test"
    )


def test_abort(worker: Worker, label: Label):
    sent = send(flights.aborts, worker, str(label))
    label.next("start")
    clear(f"aborts:{label}")
    label.next("end")
    with pytest.raises(SoftTimeLimitExceeded):
        result(sent)
    worker.wait_for(f"aborted, its lock aborts:{label} is lost: revoked")


def test_a_run_that_keeps_its_lock_is_not_aborted(worker: Worker, label: Label):
    first = send(flights.aborts, worker, str(label))
    label.next("start")
    label.open()
    assert result(first) == "done"
    label.next("end")
    second = send(flights.aborts, worker, str(label))
    label.next("start")
    label.open()
    assert result(second) == "done"
