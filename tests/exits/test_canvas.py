"""Members of a canvas end like any task, and hand nothing down to what follows them."""

from __future__ import annotations

import pytest
from celery import chain, chord, group

from tests.celery.harness import Label
from tests.exits import app
from tests.exits.cell import AT_ONCE, Cell, exits

FORMS = {
    "chain": lambda first, last: chain(first, last),
    "group": lambda first, last: group([first, last]),
    "chord": lambda first, last: chord([first], last),
    "link": lambda first, last: _linked(first, last),
    "link_error": lambda first, last: first.on_error(last),
}


def _linked(first, last):
    first.link(last)
    return first


@pytest.mark.parametrize("form", FORMS)
@exits("a member of a chain, group or chord; `link`, `link_error`", "prefork", at=app.PLACES)
def test_member(cell: Cell, other: Label, form: str) -> None:
    if form == "chord" and not cell.redis:
        pytest.skip("a chord sends its header to the broker of its app, whatever it is given")
    how = "error" if form == "link_error" else "success"
    first = cell.task().si(str(cell.label), how).set(queue=cell.worker.queue)
    last = app.child.si(str(other)).set(queue=cell.worker.queue)
    with cell.connection() as connection:
        FORMS[form](first, last).apply_async(connection=connection)
    started = float(cell.started()["at"])
    cell.go()
    ended = cell.ended()
    cell.free(started if cell.spec.at == "enqueue" else ended, AT_ONCE)
    assert other.next("child")["ours"] == []


@exits("`replace`: the replacement's run", "prefork", at=("run", "both"))
def test_replace(cell: Cell) -> None:
    cell.send("replace")
    cell.started()
    cell.go()
    again = cell.runs_again(cell.ended(), AT_ONCE)
    assert again["waits"] == 0
    cell.go()
    cell.free(cell.ended(), AT_ONCE)
