"""A retry never meets the lock of the run it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.celery import app, harness
from tests.celery.harness import Label, Worker, result, until


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Worker]]:
    """Two workers on one queue: one of them is always idle."""
    with (
        harness.worker(concurrency=1) as first,
        harness.worker(first.queue, concurrency=2) as second,
    ):
        yield [first, second]


@pytest.fixture
def worker(workers: list[Worker]) -> Worker:
    return workers[0]


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


@pytest.mark.parametrize("task", [app.again, app.again_under, app.again_option])
def test_many_retries_with_an_idle_second_worker(worker: Worker, label: Label, task):
    sent = send(task, worker, str(label), 100)
    # Not the result: Celery may store the state RETRY of a run after its successor's SUCCESS.
    events = [label.next("run") for _ in range(101)]
    assert [event["retries"] for event in events] == list(range(101))
    assert {event["id"] for event in events} == {sent.id}
    assert len({event["pid"] for event in events}) > 1
    assert {event["waits"] for event in events} == {0}
    label.nothing_left()


def test_autoretry(worker: Worker, label: Label):
    send(app.auto, worker, str(label))
    assert [label.next("run")["retries"] for _ in range(4)] == [0, 1, 2, 3]
    label.nothing_left()


def test_a_retry_with_other_arguments_takes_their_lock(worker: Worker, label: Label):
    send(app.moves, worker, str(label), 1)
    locks = [label.next("run")["lock"] for _ in range(2)]
    assert locks == [f"move:{label}:1", f"move:{label}:2"]


def test_a_replacement_takes_over_at_once(worker: Worker, label: Label):
    send(app.replaced, worker, str(label), 3)
    assert [label.next("run")["level"] for _ in range(4)] == [3, 2, 1, 0]
    label.nothing_left()


def test_retries_are_without_the_lock_if_the_call_was(worker: Worker, label: Label):
    send(app.again, worker, str(label), 2, single_flight=False)
    assert [label.next("run")["lock"] for _ in range(3)] == [None] * 3


def test_a_retry_that_finds_the_lock_taken_is_a_conflict_like_any(
    workers: list[Worker], worker: Worker, label: Label
):
    """Between two runs of a job somebody else may have their turn; it waits by its policy."""
    sent = send(app.lets_go, worker, str(label))
    label.next("run")
    lock = app.lets_go.single_flight.lock(str(label))
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(lock.acquire)
        until(lambda: lock.inspect().waiters == 1)
        label.open()
        lease = waiting.result()
        told = "lets_go: sent again for in"
        until(lambda: any(told in line for each in workers for line in each.output))
        lease.release()
    assert result(sent) == 1
    assert label.next("run")["retries"] == 1
