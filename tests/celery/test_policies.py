"""Twenty calls, one run; and what the other nineteen do."""

from __future__ import annotations

import pytest

from django_latch import LatchBusy
from tests.celery import app
from tests.celery.harness import Label, Worker, result


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def test_twenty_calls_run_once(worker: Worker, label: Label):
    first = send(app.hold, worker, str(label))
    label.next("start")
    others = [send(app.hold, worker, str(label)) for _ in range(19)]
    assert [result(other) for other in others] == [None] * 19
    label.open()
    assert result(first) == "done"
    label.next("end")
    label.nothing_left()
    line = worker.wait_for(f"skipped, hold:{label}")
    assert f"hold:{label} is held by tests.celery.app.hold on {worker.name} (pid " in line
    assert line.rstrip().endswith(" s")


def test_other_keys_run_beside_it(worker: Worker, label: Label):
    first = send(app.no_key, worker, str(label), 1)
    label.next("start")
    second = send(app.no_key, worker, str(label), 2)
    label.next("start")
    assert result(send(app.no_key, worker, str(label), kwargs={"value": 1})) is None
    label.open(2)
    assert result(first) == result(second) == "done"


def test_raise(worker: Worker, label: Label):
    first = send(app.raising, worker, str(label))
    label.next("start")
    with pytest.raises(LatchBusy) as caught:
        result(send(app.raising, worker, str(label)))
    assert caught.value.name == f"raising:{label}"
    assert caught.value.holder["task"] == "tests.celery.app.raising"
    assert caught.value.holder["worker"] == worker.name
    assert caught.value.holder["task_id"] == first.id
    assert 0 < caught.value.ttl_remaining <= 30
    label.open()
    assert result(first) == "done"


def test_retry_waits_and_leaves_the_task_s_own_retries_alone(worker: Worker, label: Label):
    first = send(app.patient, worker, str(label))
    label.next("start")
    second = send(app.patient, worker, str(label))
    worker.wait_for(f"patient:{label}: 'patient:{label}' is held")
    label.open()
    assert result(first) == "done"
    label.next("end")
    event = label.next("start")
    assert (event["id"], event["retries"]) == (second.id, 0)
    assert event["headers"]["django_latch"]["waits"] >= 1
    label.open()
    assert result(second) == "done"


def test_retry_gives_up_after_max_waits(worker: Worker, label: Label):
    first = send(app.patient, worker, str(label))
    label.next("start")
    with pytest.raises(LatchBusy):
        result(send(app.impatient, worker, str(label)))
    assert result(send(app.indifferent, worker, str(label))) == "no"
    label.open()
    assert result(first) == "done"


def test_the_lock_is_the_lease_of_the_run(worker: Worker, label: Label):
    first = send(app.hold, worker, str(label))
    assert label.next("start")["lock"] == f"hold:{label}" == app.hold.single_flight.key(str(label))
    assert app.hold.single_flight.is_running(str(label))
    holder = app.hold.single_flight.lock(str(label)).inspect().holder
    assert holder.owner.task_id == first.id
    assert holder.owner.root_id == first.id
    assert holder.owner.args == f"('{label}',) {{}}"
    label.open()
    assert result(first) == "done"
    assert not app.hold.single_flight.is_running(str(label))


def test_a_call_without_the_lock(worker: Worker, label: Label):
    first = send(app.hold, worker, str(label))
    label.next("start")
    second = send(app.hold, worker, str(label), single_flight=False)
    assert label.next("start")["lock"] is None
    label.open(2)
    assert result(first) == result(second) == "done"


@pytest.mark.parametrize(
    "task", [app.under, app.under_bound, app.option, app.based, app.classy, app.of_app]
)
def test_every_placement_in_a_worker(worker: Worker, label: Label, task):
    first = send(task, worker, str(label))
    label.next("start")
    assert result(send(task, worker, str(label))) in (None, ["audited", None])
    unlocked = send(task, worker, str(label), single_flight=False)
    label.next("start")
    label.open(2)
    assert result(first) in ("done", ["audited", "done"])
    assert result(unlocked) in ("done", ["audited", "done"])


def test_a_task_sent_by_name_is_guarded(worker: Worker, label: Label):
    send_task = app.app.send_task
    name = "tests.celery.app.hold"
    first = send_task(name, (str(label),), queue=worker.queue)
    event = label.next("start")
    assert event["headers"]["django_latch"]["key"] == f"hold:{label}"
    assert result(send_task(name, (str(label),), queue=worker.queue)) is None
    label.open()
    assert result(first) == "done"


def test_a_task_sent_by_name_from_elsewhere_is_guarded(worker: Worker, label: Label):
    """By a program that knows nothing of our tasks."""
    from celery import Celery

    with Celery(set_as_current=False, broker=app.app.conf.broker_url) as foreign:
        name = "tests.celery.app.hold"
        first = foreign.send_task(name, (str(label),), queue=worker.queue)
        label.next("start")
        second = foreign.send_task(name, (str(label),), queue=worker.queue)
        assert result(app.app.AsyncResult(second.id)) is None
        label.open()
        assert result(app.app.AsyncResult(first.id)) == "done"


def test_wrong_arguments_sent_by_name_fail_the_task(worker: Worker):
    sent = app.app.send_task("tests.celery.app.hold", (1, 2, 3, 4), queue=worker.queue)
    with pytest.raises(TypeError, match="too many positional arguments"):
        result(sent)
