"""A worker that is shut down: each run it interrupts or lets end gives its lock back at once."""

from __future__ import annotations

import os
import signal
import time

import pytest
from celery import VERSION

from tests.exits.cell import AT_ONCE, SOON_AFTER_THAT, Cell, exits
from tests.exits.columns import POOLS

#: A worker that stores no results: under gevent its handler of a signal cannot talk to Redis.
NO_RESULTS = {"result_backend": "disabled://"}


def shut_down(cell: Cell, *signals: tuple[signal.Signals, str], conf=None) -> float:
    """Start a run and shut its worker down; when the run's function had ended.

    Parameters:
        cell: the cell.
        signals: what the worker is sent, each with what it says then.
        conf: Celery settings of the worker.
    """
    with cell.own_worker(conf=conf) as worker:
        cell.use(worker)
        cell.send()
        cell.started()
        for number, answer in signals:
            worker.process.send_signal(number)
            worker.wait_for(answer)
        cell.go()  # whoever is not interrupted comes to its end
        ended = cell.ended()
        cell.free(ended, AT_ONCE)
        worker.process.wait(20)
        assert not cell.held()
    return ended


@exits("warm shutdown: SIGTERM", *POOLS)
def test_warm(cell: Cell) -> None:
    shut_down(cell, (signal.SIGTERM, "Warm shutdown"))


@exits("SIGTERM twice", *POOLS)
def test_warm_twice(cell: Cell) -> None:
    shut_down(cell, (signal.SIGTERM, "Warm shutdown"), (signal.SIGTERM, "Warm shutdown"))


@exits("cold shutdown: SIGQUIT", *POOLS)
def test_cold(cell: Cell) -> None:
    if VERSION < (5, 5) and cell.pool == "prefork":
        cold_and_killed(cell)
        return
    shut_down(cell, (signal.SIGQUIT, "terminate all running tasks"), conf=NO_RESULTS)


def cold_and_killed(cell: Cell) -> None:
    """Before 5.5 the children are killed; the worker tells the store before it ends itself."""
    with cell.own_worker() as worker:
        cell.use(worker)
        cell.send()
        cell.started()
        worker.process.send_signal(signal.SIGQUIT)
        worker.process.wait(20)
        cell.free(time.time(), SOON_AFTER_THAT)


@exits("soft shutdown: SIGQUIT, then the time-out", *POOLS)
@pytest.mark.skipif(VERSION < (5, 5), reason="Celery has it from 5.5 on")
def test_soft(cell: Cell) -> None:
    conf = {**NO_RESULTS, "worker_soft_shutdown_timeout": 1.0}
    with cell.own_worker(conf=conf) as worker:
        cell.use(worker)
        cell.send()
        cell.started()
        worker.process.send_signal(signal.SIGQUIT)
        worker.wait_for("Initiating Soft Shutdown")
        if cell.pool != "prefork":
            cell.go()
        cell.free(cell.ended(), AT_ONCE)
        cell.go()
        worker.process.wait(20)
        assert not cell.held()


@exits("SIGQUIT twice", "prefork")
def test_cold_twice(cell: Cell) -> None:
    conf = {**NO_RESULTS, "worker_soft_shutdown_timeout": 3.0}
    with cell.own_worker(conf=conf) as worker:
        cell.use(worker)
        cell.send()
        cell.started()
        worker.process.send_signal(signal.SIGQUIT)
        worker.wait_for("Initiating Soft Shutdown" if VERSION >= (5, 5) else "Cold shutdown")
        os.kill(worker.process.pid, signal.SIGQUIT)
        cell.free(cell.ended(), AT_ONCE)


@exits("child SIGKILL, in a warm shutdown", "prefork")
def test_child_killed_in_warm_shutdown(cell: Cell) -> None:
    """Nobody looks at the children any more; the worker does so once before it ends."""
    with cell.own_worker() as worker:
        cell.use(worker)
        cell.send()
        pid = cell.started()["pid"]
        worker.process.send_signal(signal.SIGTERM)
        worker.wait_for("Warm shutdown")
        os.kill(pid, signal.SIGKILL)
        worker.process.wait(30)
        cell.free(time.time(), SOON_AFTER_THAT)
