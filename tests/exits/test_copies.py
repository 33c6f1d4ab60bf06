"""A message delivered twice is one job: one run, one result, one next link."""

from __future__ import annotations

import time
from itertools import pairwise

from celery import chain

from tests.celery.app import again
from tests.celery.harness import result, until
from tests.exits import app
from tests.exits.cell import AT_ONCE, Bound, Cell, exits


@exits("visibility time-out in the middle of a run: one run", "prefork", at=("run",), only="redis")
def test_visibility_timeout(cell: Cell) -> None:
    """visibility_timeout is 5 s, the task takes 12 s; a second worker is free for the copies."""
    with (
        cell.own_worker(hasty=True) as first,
        cell.own_worker(queue=first.queue, hasty=True),
    ):
        cell.use(first)
        task = cell.task("late")
        links = chain(
            task.s(str(cell.label), "success").set(queue=first.queue),
            app.link.s(str(cell.label)).set(queue=first.queue),
        )
        with cell.connection() as connection:
            sent = links.apply_async(connection=connection)
        started = float(cell.started()["at"])
        until(lambda: time.time() > started + 12)
        cell.label.nothing_left()
        cell.go()
        ended = cell.ended()
        assert cell.label.next("link")["given"] == "done"
        cell.free(ended, AT_ONCE)
        assert result(sent.parent) == "done"
        assert result(sent) == "linked"
        # The copies are still about, waiting for the lock that the first run had.
        until(lambda: time.time() > ended + 6)
        cell.label.nothing_left()
        assert result(sent.parent) == "done"


@exits("ETA longer than the visibility time-out: one run", "prefork", at=("run",), only="redis")
def test_eta(cell: Cell) -> None:
    with (
        cell.own_worker(hasty=True) as first,
        cell.own_worker(queue=first.queue, hasty=True),
    ):
        cell.use(first)
        due = time.time() + 12
        sent = cell.send(countdown=12)
        event = cell.label.next("start", 20)
        cell.judge(float(event["at"]) - due, Bound("at the ETA", -0.5, 3))
        cell.go()
        ended = cell.ended()
        assert result(sent) == "done"
        until(lambda: time.time() > ended + 6)
        cell.label.nothing_left()
        assert result(sent) == "done"


@exits("`self.retry` 1,000 times beside an idle worker", "prefork", at=("run",))
def test_many_retries(cell: Cell) -> None:
    """No retry ever meets the lock of the run that it comes from."""
    with cell.own_worker() as first, cell.own_worker(queue=first.queue):
        with cell.connection() as connection:
            arguments = (str(cell.label), 1000)
            again.apply_async(arguments, queue=first.queue, connection=connection)
        events = [cell.label.next("run") for _ in range(1001)]
    assert [event["retries"] for event in events] == list(range(1001))
    assert {event["waits"] for event in events} == {0}
    assert len({event["pid"] for event in events}) > 1
    cell.label.nothing_left()
    gaps = [after["at"] - before["at"] for before, after in pairwise(events)]
    cell.judge(max(gaps), Bound("longest gap of two runs", 0, 5))
