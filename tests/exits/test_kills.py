"""A run that is killed cannot give its lock back: its parent does, or the TTL."""

from __future__ import annotations

import os
import signal
import time

import pytest
from celery import Task
from celery.exceptions import TaskRevokedError, TimeLimitExceeded, WorkerLostError

from tests.celery.harness import result, until
from tests.exits import app
from tests.exits.cell import SOON, SOON_AFTER_THAT, Cell, after, exits
from tests.exits.columns import HASTE, POOLS

#: How Celery reports it. It believes that it has ended a child itself, if an earlier job of that
#: child was revoked with a signal which the child has survived.
LOST = (WorkerLostError, TaskRevokedError)


def kill_child(cell: Cell) -> float:
    """Kill the child that runs the task; when that was."""
    pid = cell.started()["pid"]
    assert pid != cell.worker.process.pid
    os.kill(pid, signal.SIGKILL)
    return time.time()


@exits("hard time limit, deaf to SIGTERM", "prefork")
def test_hard_time_limit(cell: Cell) -> None:
    sent = cell.send("deaf", time_limit=1)
    cell.started()
    with pytest.raises(TimeLimitExceeded):
        result(sent)
    cell.free(time.time(), SOON_AFTER_THAT)


@exits("hard time limit, child in a GIL-bound call", "prefork")
def test_hard_time_limit_of_a_busy_child(cell: Cell) -> None:
    sent = cell.send("busy", time_limit=1)
    cell.started()
    with pytest.raises(TimeLimitExceeded):
        result(sent)
    cell.free(time.time(), SOON_AFTER_THAT)


@exits("child SIGKILL, or out of memory", "prefork")
def test_child_killed(cell: Cell) -> None:
    sent = cell.send()
    cell.free(kill_child(cell), SOON)
    with pytest.raises(LOST):
        result(sent)


@exits("child SIGKILL, `acks_late`", "prefork")
def test_child_killed_acks_late(cell: Cell) -> None:
    sent = cell.send(kind="late")
    cell.free(kill_child(cell), SOON)
    with pytest.raises(LOST):
        result(sent)


@exits("child SIGKILL, `reject_on_worker_lost`", "prefork")
def test_child_killed_and_requeued(cell: Cell) -> None:
    """Celery may need 5 seconds more to notice and send the job again; it does the work then."""
    sent = cell.send(kind="lost")
    cell.free(kill_child(cell), SOON)
    again = cell.started()
    assert (again["id"], again["retries"]) == (sent.id, 0)
    cell.go()
    assert result(sent) == "done"


@pytest.mark.skipif(not hasattr(Task, "retry_on_worker_lost"), reason="Celery has it from 5.7 on")
@exits("child SIGKILL, `retry_on_worker_lost`", "prefork")
def test_child_killed_and_retried(cell: Cell) -> None:
    sent = cell.send(kind="retried")
    cell.free(kill_child(cell), SOON)
    again = cell.started()
    assert (again["id"], again["retries"]) == (sent.id, 1)
    cell.go()
    assert result(sent) == "done"


@exits("worker SIGKILL", *POOLS)
def test_worker_killed(cell: Cell) -> None:
    with cell.own_worker() as worker:
        cell.use(worker)
        cell.send(ttl=app.SHORT)
        cell.started()
        worker.kill()
        killed, remaining = time.time(), cell.remaining()
        cell.free(killed, after(remaining))


@exits("worker SIGKILL, `acks_late`: the next run, on another worker", "prefork")
def test_worker_killed_acks_late(cell: Cell) -> None:
    """The redelivered copy waits for the dead run's lock and does the work; nothing is skipped."""
    with cell.own_worker(hasty=True) as first:
        cell.use(first)
        sent = cell.send(kind="late", ttl=app.SHORT)
        cell.started()
        first.kill()
        killed, remaining = time.time(), cell.remaining()
        if cell.redis:  # a worker that starts looks for lost messages at once
            until(lambda: time.time() > killed + HASTE["visibility_timeout"])
        with cell.own_worker(queue=first.queue, hasty=True) as second:
            cell.use(second)
            again = cell.runs_again(killed, after(remaining, app.SHORT + (15 if cell.redis else 5)))
            assert (again["id"], again["retries"]) == (sent.id, 0)
            cell.go()
            assert result(sent) == "done"
            until(lambda: not cell.held())
            cell.label.next("end")
            cell.label.nothing_left()
