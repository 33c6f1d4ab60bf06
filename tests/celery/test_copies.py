"""A broker may deliver one message twice: the work is done once, and not dropped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import redis

from tests import servers
from tests.celery import app, harness
from tests.celery.harness import Label, Worker, result, until

#: Seconds until the broker takes a message for lost. A worker looks for such when it starts.
VISIBILITY = 1

Sender = Callable[..., Any]


@pytest.fixture
def queue() -> Iterator[str]:
    """A queue on an empty broker."""
    with redis.Redis.from_url(servers.url(harness.OWN_BROKER)) as broker:
        broker.flushdb()
        yield f"q{uuid4().hex[:8]}"


@pytest.fixture
def send(queue: str) -> Iterator[Sender]:
    """Sends a task there."""
    with app.app.connection_for_write(servers.url(harness.OWN_BROKER)) as broker:
        yield lambda task, *args, **options: task.apply_async(
            args, queue=queue, connection=broker, **options
        )


@pytest.fixture
def worker(queue: str) -> Iterator[Worker]:
    """The worker that gets the message first."""
    with harness.worker(queue, concurrency=1, visibility=VISIBILITY) as started:
        yield started


def until_redelivered(since: float) -> None:
    """Wait until the broker will take a message received at `since` for lost."""
    until(lambda: time.time() > since + VISIBILITY + 0.5)


def until_ended_quietly(*workers: Worker) -> None:
    """Wait until one of them has found the work of a message done."""
    done = "another copy of this message has done the work"
    until(lambda: any(done in line for worker in workers for line in worker.output))


def test_the_copy_of_a_living_run_waits_and_ends_quietly(
    worker: Worker, queue: str, send: Sender, label: Label
):
    sent = send(app.late, str(label), link=app.linked.s(str(label)).set(queue=queue))
    start = label.next("start")
    until_redelivered(start["at"])
    with harness.worker(queue, concurrency=1, visibility=VISIBILITY) as second:
        second.wait_for("late: sent again for in")
        label.open()
        label.next("end")
        assert label.next("linked")["value"] == "done"
        until_ended_quietly(worker, second)
    assert result(sent) == "done"
    label.nothing_left()


def test_the_copy_of_a_dead_run_waits_and_does_the_work(
    worker: Worker, queue: str, send: Sender, label: Label
):
    sent = send(app.fragile, str(label))
    start = label.next("start")
    worker.kill()
    until_redelivered(start["at"])
    with harness.worker(queue, concurrency=1, visibility=VISIBILITY) as second:
        second.wait_for("fragile: sent again for in")
        again = label.next("start")
        assert (again["id"], again["retries"]) == (sent.id, 0)
        assert 7 - 1 < again["at"] - start["at"] < 7 + 3
        label.open()
        assert result(sent) == "done"
    label.next("end")
    label.nothing_left()


def test_an_eta_beyond_the_visibility_time_out_runs_once(
    worker: Worker, queue: str, send: Sender, label: Label
):
    eta = time.time() + 6
    sent = send(app.hold, str(label), countdown=6)
    worker.wait_for("received")
    until_redelivered(time.time())
    with harness.worker(queue, concurrency=1, visibility=VISIBILITY) as second:
        both = worker.output, second.output
        until(lambda: sum("received" in line for lines in both for line in lines) > 1)
        label.open()
        assert label.next("start")["at"] >= eta - 0.5
        label.next("end")
        until_ended_quietly(worker, second)
    assert result(sent) == "done"
    label.nothing_left()


def test_a_run_requeued_by_its_worker_is_done_again(worker: Worker, send: Sender, label: Label):
    """`reject_on_worker_lost`: Celery sends no signal, the copy comes at once."""
    sent = send(app.late, str(label))
    start = label.next("start")
    harness.kill(start["pid"])
    again = label.next("start")
    assert (again["id"], again["retries"]) == (sent.id, 0)
    label.open()
    assert result(sent) == "done"
    label.next("end")
    label.nothing_left()


def test_a_message_rejected_by_its_task_comes_back(worker: Worker, send: Sender, label: Label):
    sent = send(app.rejects, str(label))
    assert result(sent) == "second time"
