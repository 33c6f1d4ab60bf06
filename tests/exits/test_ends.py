"""A run that ends by itself gives its lock back at once."""

from __future__ import annotations

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from tests.celery.harness import result
from tests.exits.cell import AT_ONCE, Cell, exits
from tests.exits.columns import POOLS


def leave(cell: Cell, how: str, kind: str = "plain") -> float:
    """Run the task to its end; when that was."""
    cell.send(how, kind=kind)
    cell.started()
    assert cell.held()
    cell.go()
    return cell.ended()


@exits("success", *POOLS)
def test_success(cell: Cell) -> None:
    cell.free(leave(cell, "success"), AT_ONCE)


@exits("exception", *POOLS)
def test_exception(cell: Cell) -> None:
    cell.free(leave(cell, "error"), AT_ONCE)


@exits("`Ignore`", *POOLS)
def test_ignore(cell: Cell) -> None:
    cell.free(leave(cell, "ignore"), AT_ONCE)


@exits("`Reject`", *POOLS)
def test_reject(cell: Cell) -> None:
    cell.free(leave(cell, "reject"), AT_ONCE)


@exits("`Reject(requeue=True)`: the next run", *POOLS)
def test_reject_and_requeue(cell: Cell) -> None:
    again = cell.runs_again(leave(cell, "requeue", "late"), AT_ONCE)
    assert (again["retries"], again["waits"]) == (0, 0)
    cell.go()
    cell.ended()


@exits("`self.retry`, through its countdown", *POOLS)
def test_retry(cell: Cell) -> None:
    cell.free(leave(cell, "retry"), AT_ONCE)
    again = cell.started()
    assert (again["retries"], again["waits"]) == (1, 0)
    cell.go()
    cell.ended()


@exits("autoretry, through its countdown", *POOLS)
def test_autoretry(cell: Cell) -> None:
    cell.free(leave(cell, "error", "auto"), AT_ONCE)
    again = cell.started()
    assert (again["retries"], again["waits"]) == (1, 0)
    cell.go()
    cell.ended()


@exits("retries exhausted", *POOLS)
def test_retries_exhausted(cell: Cell) -> None:
    cell.free(leave(cell, "exhausted"), AT_ONCE)


@exits("`SystemExit` in the task", "prefork")
def test_system_exit(cell: Cell) -> None:
    cell.free(leave(cell, "system exit"), AT_ONCE)


@exits("soft time limit", "prefork")
def test_soft_time_limit(cell: Cell) -> None:
    sent = cell.send(soft_time_limit=1)
    cell.started()
    cell.free(cell.ended(), AT_ONCE)
    with pytest.raises(SoftTimeLimitExceeded):
        result(sent)


@exits("hard time limit, `finally` runs", "gevent")
def test_hard_time_limit_of_a_greenlet(cell: Cell) -> None:
    cell.send(time_limit=1)
    cell.started()
    cell.free(cell.ended(), AT_ONCE)
