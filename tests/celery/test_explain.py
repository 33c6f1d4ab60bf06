"""Why did my task not run?"""

from __future__ import annotations

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from django_latch import Latch
from tests.celery import app, flights
from tests.celery.harness import Label, Worker, result, until


def show(*args: str) -> str:
    output = StringIO()
    call_command("latch_show", *args, stdout=output)
    return output.getvalue()


def test_a_free_lock(label: Label):
    found = app.hold.single_flight.explain(str(label))
    assert found.running == "goes on: the lock is free"
    assert found.report.lock is None
    assert "held by: nobody" in str(found)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (app.hold, "a run now: is skipped: the lock is taken"),
        (app.raising, "a run now: fails with LatchBusy"),
        (app.patient, "a run now: is sent again, for later"),
        (flights.waiting, "a run now: waits in the queue"),
        (flights.newest, "a run now: leaves its arguments to the next run"),
        (flights.both, "a call now: is skipped"),
        (flights.queued, "a run now: goes on: this task holds its lock only while it is queued"),
    ],
)
def test_what_a_call_would_do(label: Label, task, says: str):
    with task.single_flight.lock(str(label)):
        assert says in str(task.single_flight.explain(str(label)))


def test_a_permit_that_is_left(label: Label):
    lock = Latch(f"pair:{label}", limit=2)
    with lock:
        found = flights.pair.single_flight.explain(str(label))
        assert found.running == "goes on: the lock is free"
        with lock:
            found = flights.pair.single_flight.explain(str(label))
            assert found.running == "is skipped: the lock is taken"


def test_the_story_of_a_run(worker: Worker, label: Label):
    first = app.hold.apply_async((str(label),), queue=worker.queue)
    label.next("start")
    second = app.hold.apply_async((str(label),), queue=worker.queue)
    assert result(second) is None
    found = app.hold.single_flight.explain(str(label))
    assert found.report.lock.holder.owner.task_id == first.id
    refused = found.report.events[0]
    assert (refused.kind, refused.owner.task_id) == ("refused", second.id)
    assert refused.more == {"reason": "busy"}
    assert f"refused: tests.celery.app.hold on {worker.name}" in str(found)
    label.open()
    assert result(first) == "done"
    ended = until(lambda: app.hold.single_flight.explain(str(label)).report.last_finished)
    assert ended.owner.task_id == first.id


def test_the_next_run(label: Label):
    queue = f"q{uuid4().hex[:8]}"
    with flights.newest_both.single_flight.lock(str(label)):
        sent = flights.newest_both.apply_async((str(label), "secret"), queue=queue)
        found = flights.newest_both.single_flight.explain(str(label))
    assert found.report.next_run.task_id == sent.id
    assert f"next run: carried by job {sent.id}" in str(found)


def test_nothing_secret_is_told(label: Label):
    with app.hold.single_flight.lock(str(label)) as lease:
        told = show(f"hold:{label}") + show(f"hold:{label}", "--format", "json")
    assert lease.token not in told
    assert f"fence {lease.fence}" in told


class TestTheCommand:
    def test_a_name(self, label: Label):
        with Latch(f"x:{label}"):
            lines = show(f"x:{label}").splitlines()
        assert lines[0] == f"lock: x:{label}"
        assert lines[1].startswith("held: a process on ")
        assert lines[2] == "waiting: 0"

    def test_a_task(self, label: Label):
        name = app.hold.name
        lines = show("--task", name, "--args", json.dumps([str(label)])).splitlines()
        assert lines[0] == f"task: {name}"
        assert f"lock: hold:{label}" in lines
        same = show("--task", name, "--kwargs", json.dumps({"label": str(label)}))
        assert same.splitlines() == lines

    def test_json(self, label: Label):
        with app.hold.single_flight.lock(str(label)):
            args = ("--task", app.hold.name, "--args", f'["{label}"]', "--format", "json")
            (record,) = json.loads(show(*args))
        assert record["lock"]["name"] == f"hold:{label}"
        assert record["events"][0]["kind"] == "acquired"

    @pytest.mark.parametrize(
        ("args", "says"),
        [
            (("--task", "no.such.task"), "has no task 'no.such.task'"),
            (("--task", "hold"), "did you mean 'tests.celery.app.hold'?"),
            (("--task", "tests.celery.app.hodl"), "did you mean 'tests.celery.app.hold'?"),
            (("--task", app.unguarded.name), "has no single flight"),
            (("--task", app.hold.name), "missing a required argument: 'label'"),
            (("--task", app.hold.name, "--args", "5"), "must be an array"),
            (("--task", app.hold.name, "--kwargs", "x"), "no JSON"),
            ((), "one of the arguments"),
        ],
    )
    def test_wrong_usage(self, args, says: str):
        with pytest.raises(CommandError, match=says):
            show(*args)

    def test_a_hostile_name(self, label: Label):
        assert "\x1b" not in show("x\x1b[31m")
