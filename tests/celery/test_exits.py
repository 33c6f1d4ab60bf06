"""However a run ends, its lock is free: at once where the child can say so, else soon."""

from __future__ import annotations

import os
import signal
import time

import pytest
from celery.exceptions import SoftTimeLimitExceeded, TimeLimitExceeded

from django_latch import Latch
from tests.celery import app
from tests.celery.harness import Label, Worker, kill, result, until

#: What a bound may be exceeded by on a busy machine, in seconds.
SLACK = 2.0


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def revoke(sent, worker: Worker, how: str) -> None:
    """Terminate a run that the worker knows to have begun: before, it may send the signal twice."""
    active = app.app.control.inspect([worker.name], limit=1).active
    until(lambda: any(run["id"] == sent.id and run["time_start"] for run in active()[worker.name]))
    app.app.control.revoke(sent.id, terminate=True, signal=how)


def seconds_until_free(task, label: Label, since: float) -> float:
    """How long after `since` somebody else can have the lock of a task."""
    lock = Latch(task.__name__.partition("_")[0] + f":{label}", timeout=0)
    with until(lock.try_acquire, 60):
        return time.time() - since


@pytest.mark.parametrize("how", ["return", "error", "ignore", "reject", "system exit"])
def test_the_child_frees_it_at_once(worker: Worker, label: Label, how: str):
    send(app.leaves, worker, str(label), how)
    event = label.next("start")
    assert seconds_until_free(app.leaves, label, event["at"]) < SLACK


def test_soft_time_limit(worker: Worker, label: Label):
    sent = send(app.limited, worker, str(label))
    label.next("start")
    ended = label.next("end")
    assert seconds_until_free(app.limited, label, ended["at"]) < SLACK
    with pytest.raises(SoftTimeLimitExceeded):
        result(sent)


class TestADeadChild:
    """Its parent shortens the lease: about one second, instead of 60."""

    @pytest.mark.parametrize("task", [app.slow, app.slow_under, app.slow_option])
    def test_sigkill(self, worker: Worker, label: Label, task):
        send(task, worker, str(label))
        event = label.next("start")
        kill(event["pid"])
        killed = time.time()
        # Long before Celery itself has noticed, which may take it five seconds.
        assert 0.5 < seconds_until_free(task, label, killed) < 1 + SLACK

    def test_hard_time_limit(self, worker: Worker, label: Label):
        sent = send(app.hard, worker, str(label))
        label.next("start")
        with pytest.raises(TimeLimitExceeded):
            result(sent)
        assert seconds_until_free(app.hard, label, time.time()) < 1 + SLACK

    def test_revoked_with_sigkill(self, worker: Worker, label: Label):
        sent = send(app.slow, worker, str(label))
        label.next("start")
        revoke(sent, worker, "SIGKILL")
        until(lambda: sent.state == "REVOKED")
        assert seconds_until_free(app.slow, label, time.time()) < 1 + SLACK


def test_a_child_that_may_be_alive_keeps_it(worker: Worker, label: Label):
    """Revoked with SIGTERM, it still has something to finish: nobody else runs meanwhile."""
    sent = send(app.tidies, worker, str(label))
    label.next("start")
    revoke(sent, worker, "SIGTERM")
    label.next("tidying")
    until(lambda: sent.state == "REVOKED")
    left = app.tidies.single_flight.lock(str(label)).inspect().holder.expires_in
    assert left > 10
    assert result(send(app.tidies, worker, str(label))) is None
    label.open()
    tidied = label.next("tidied")
    assert seconds_until_free(app.tidies, label, tidied["at"]) < SLACK


def test_a_paused_child_loses_it_after_the_ttl(worker: Worker, label: Label):
    send(app.short, worker, str(label))
    event = label.next("start")
    os.kill(event["pid"], signal.SIGSTOP)
    try:
        assert 0.5 < seconds_until_free(app.short, label, time.time()) < 1.5 + SLACK
        with app.short.single_flight.lock(str(label)) as lease:
            os.kill(event["pid"], signal.SIGCONT)
            label.open()
            label.next("end")
            worker.wait_for("could not give back the lock")
            lease.ensure_held()
            lease.renew()
    finally:
        os.kill(event["pid"], signal.SIGCONT)
