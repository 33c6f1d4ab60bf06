"""A running task that is revoked with termination."""

from __future__ import annotations

import time

from tests.celery.harness import result, until
from tests.exits.cell import AT_ONCE, SOON_AFTER_THAT, Cell, exits


@exits("revoke, SIGTERM", "prefork", "gevent")
def test_terminate(cell: Cell) -> None:
    sent = cell.send()
    cell.started()
    cell.revoke(sent, terminate=True, signal="SIGTERM")
    cell.free(cell.ended(), AT_ONCE)


@exits("revoke, SIGUSR1", "prefork")
def test_soft(cell: Cell) -> None:
    sent = cell.send()
    cell.started()
    cell.revoke(sent, terminate=True, signal="SIGUSR1")
    cell.free(cell.ended(), AT_ONCE)


@exits("revoke, SIGKILL", "prefork")
def test_kill(cell: Cell) -> None:
    sent = cell.send()
    cell.started()
    cell.revoke(sent, terminate=True, signal="SIGKILL")
    until(lambda: sent.state == "REVOKED")
    cell.free(time.time(), SOON_AFTER_THAT)


@exits("revoke, SIGTERM: no effect, the run's end", "threads", "solo")
def test_no_effect(cell: Cell) -> None:
    sent = cell.send()
    cell.started()
    if cell.pool == "threads":  # a solo worker reads commands between two tasks
        cell.revoke(sent, terminate=True, signal="SIGTERM")
        assert cell.held()
    cell.go()
    cell.free(cell.ended(), AT_ONCE)


@exits("revoke, SIGTERM, `finally` takes 10 s", "prefork")
def test_long_finally(cell: Cell) -> None:
    """Celery calls it revoked at once; it still runs, and keeps everybody out until its end."""
    sent = cell.send("tidy")
    cell.started()
    cell.revoke(sent, terminate=True, signal="SIGTERM")
    tidying = float(cell.label.next("tidying")["at"])
    until(lambda: sent.state == "REVOKED")
    while time.time() < tidying + 10:
        assert cell.remaining() > 10
        again = cell.send()
        if cell.spec.at == "both":
            assert again.id == sent.id  # nothing was sent
        else:
            assert result(again) is None
    cell.go()
    cell.free(cell.ended(), AT_ONCE)
