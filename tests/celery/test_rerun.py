"""on_conflict="rerun": one more run, with the latest arguments."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from uuid import uuid4

import pytest
import redis
from kombu import Queue
from kombu.exceptions import ContentDisallowed

from django_latch import LatchValueError
from django_latch.celery import rerun, revive
from tests import servers
from tests.celery import flights, harness
from tests.celery.harness import Label, Worker, result, until
from tests.integration.aliases import locks_at


@pytest.fixture
def worker(flights_worker: Worker) -> Worker:
    flights_worker.forget()
    return flights_worker


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def test_500_calls_during_a_run_are_one_run_with_the_last_arguments(worker: Worker, label: Label):
    first = send(flights.newest, worker, str(label), 0)
    label.next("run")
    others = [send(flights.newest, worker, str(label), value) for value in range(1, 501)]
    carrier = [
        one
        for one in others
        if until(lambda one=one: one.state != "PENDING" and one.state) != "SUCCESS"
    ]
    label.open(2)
    assert result(first) == 0
    run = label.next("run")
    assert run["value"] == 500
    assert [run["id"]] == [one.id for one in carrier]
    assert result(carrier[0]) == 500
    assert {result(one) for one in others if one not in carrier} == {"merged"}
    assert flights.newest.single_flight.lock(str(label)).inspect() is None
    label.nothing_left()


def test_a_call_during_the_next_run_asks_for_another(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    send(flights.newest, worker, str(label), 2)
    label.open()
    assert label.next("run")["value"] == 2
    send(flights.newest, worker, str(label), 3)
    label.open()
    assert label.next("run")["value"] == 3
    label.open()


def test_the_holder_is_killed(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    holder = label.next("run")
    second = send(flights.newest, worker, str(label), 2)
    until(lambda: second.state == "RETRY")
    os.kill(holder["pid"], signal.SIGKILL)
    assert label.next("run")["value"] == 2
    label.open()
    assert result(second) == 2


def test_the_carrier_is_lost_and_a_worker_finds_it_overdue(
    worker: Worker, label: Label, raw: redis.Redis
):
    """The second worker dies with the carrier's message in its memory."""
    with harness.worker(concurrency=1, app="tests.celery.flights") as second:
        send(flights.newest, worker, str(label), 1)
        label.next("run")
        sent = send(flights.newest, second, str(label), 2)
        second.wait_for("newest: sent again for in")
        second.kill()
    # Only the route differs: the dead worker's queue has no reader any more.
    flights.app.control.add_consumer(second.queue, destination=[worker.name], reply=True)
    worker.wait_for("its next run is overdue, sent again")
    label.open(2)
    run = label.next("run")
    assert (run["value"], run["id"]) == (2, sent.id)
    assert result(sent) == 2
    until(lambda: not any(raw.zrange(key, 0, -1) for key in raw.keys("*due")))


def test_arguments_that_are_hidden_stay_hidden(worker: Worker, label: Label):
    hidden = {"argsrepr": "", "kwargsrepr": "***"}
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    sent = send(flights.newest, worker, str(label), 2, **hidden)
    until(lambda: sent.state == "RETRY")  # its message is sent again
    label.open()
    label.next("run")
    assert flights.newest.single_flight.lock(str(label)).inspect().holder.owner.args == " ***"
    label.open()
    assert result(sent) == 2


def test_arguments_are_hidden_in_a_message_that_is_made_anew(raw: redis.Redis):
    queue = f"q{uuid4().hex[:8]}"
    options = {"queue": queue, "argsrepr": "", "kwargsrepr": "***"}
    payload = rerun.packed(flights.newest, ("x",), {}, 12, options)
    rerun.claim(f"newest:{queue}", f"{uuid4()}:0:0", payload, 0.01)
    with redis.Redis.from_url(servers.url(harness.BROKER)) as broker:
        until(lambda: revive.look(flights.app) or broker.llen(queue))  # a worker may be faster
        headers = json.loads(broker.blpop([queue], timeout=5)[1])["headers"]
    assert (headers["argsrepr"], headers["kwargsrepr"]) == ("", "***")


def test_the_carrier_is_revoked_after_others_left_their_arguments(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    second = send(flights.newest, worker, str(label), 2)
    until(lambda: second.state == "RETRY")
    assert result(send(flights.newest, worker, str(label), 3)) == "merged"
    flights.app.control.revoke(second.id)
    worker.wait_for("its next run has another carrier")
    label.open(2)
    run = label.next("run")
    assert run["value"] == 3
    assert run["id"] != second.id


def test_a_carrier_is_revoked_that_has_its_own_arguments(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    second = send(flights.newest, worker, str(label), 2)
    until(lambda: second.state == "RETRY")
    flights.app.control.revoke(second.id)
    until(lambda: "next run: carried" not in str(flights.newest.single_flight.explain(str(label))))
    label.open(2)
    third = send(flights.newest, worker, str(label), 3)
    assert label.next("run")["value"] == 3
    assert result(third) == 3


def test_the_lock_store_forgot_and_the_carrier_has_not(
    worker: Worker, label: Label, raw: redis.Redis
):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    sent = send(flights.newest, worker, str(label), 2)
    until(lambda: sent.state == "RETRY")
    raw.delete(*[key for key in raw.keys("*") if ":J:" in key])
    worker.wait_for("newest: sent again for in")
    label.open(2)
    assert label.next("run")["value"] == 2


def test_at_the_sender_only_one_more_message_is_sent(worker: Worker, label: Label):
    first = send(flights.newest_both, worker, str(label), 0)
    label.next("run")
    others = [send(flights.newest_both, worker, str(label), value) for value in range(1, 101)]
    assert len({one.id for one in others}) == 1
    assert others[0].id != first.id
    label.open(2)
    assert label.next("run")["value"] == 100
    assert result(others[-1]) == 100
    label.nothing_left()


def test_beside_a_queued_job(worker: Worker, label: Label):
    first = send(flights.newest_queued, worker, str(label), 0, countdown=1)
    others = [send(flights.newest_queued, worker, str(label), value) for value in range(1, 11)]
    assert len({one.id for one in others} | {first.id}) == 2
    # The queued job frees the key when it starts, so both may begin at the same moment.
    values = {label.next("run")["value"] for _ in range(2)}
    label.open(2)
    assert values == {0, 10}
    assert [result(first), result(others[0])] == [0, 10]
    label.nothing_left()


def test_a_retry_of_the_next_run_goes_on_with_the_latest_arguments(worker: Worker, label: Label):
    send(flights.newest_again, worker, str(label), "first")
    label.next("run")
    sent = send(flights.newest_again, worker, str(label), "second")
    until(lambda: sent.state == "RETRY")
    send(flights.newest_again, worker, str(label), "last")
    worker.wait_for("newest_again: skipped, the next run has its arguments")
    label.open(3)
    assert [(run["value"], run["retries"]) for run in (label.next("run"), label.next("run"))] == [
        ("last", 0),
        ("last", 1),
    ]


def test_another_task_with_the_same_key_is_not_merged(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    sent = send(flights.newest, worker, str(label), 2)
    until(lambda: sent.state == "RETRY")
    assert result(send(flights.newest_other, worker, str(label), 3)) is None
    label.open(2)
    assert label.next("run")["value"] == 2


def test_arguments_that_cannot_be_kept_are_refused(worker: Worker, label: Label):
    send(flights.newest_both, worker, str(label), 1)
    label.next("run")
    with pytest.raises(LatchValueError, match="keeps the latest arguments in the lock store"):
        send(flights.newest_both, worker, str(label), object())
    label.open()


@pytest.mark.parametrize("serializer", ["json", "pickle", "yaml"])
def test_what_is_kept_of_a_call(serializer: str):
    value = ("a\n|b", {1, 2} if serializer == "pickle" else [1, "\u2028ü"])
    kept = {"queue": "far", "argsrepr": ""}
    options = {"serializer": serializer, "countdown": 5, **kept, "queue": Queue("far")}
    text = rerun.packed(flights.newest, ("x",), {"value": value}, 12, options)
    assert text.startswith("tests.celery.flights.newest\n12\n")
    name, args, kwargs, found = rerun.unpacked(text, [serializer])
    assert (name, list(args), found) == (flights.newest.name, ["x"], kept)
    assert list(kwargs["value"]) == list(value)


def test_what_is_kept_is_read_only_if_celery_may_read_it():
    text = rerun.packed(flights.newest, ("x",), {}, 12, {"serializer": "pickle"})
    with pytest.raises(ContentDisallowed):
        rerun.unpacked(text, ["json"])


def test_waiting_carriers_look_often_enough(worker: Worker, label: Label):
    send(flights.newest, worker, str(label), 1)
    label.next("run")
    sent = send(flights.newest, worker, str(label), 2)
    until(lambda: sent.state == "RETRY")
    label.open()
    ended = time.time()
    assert label.next("run")["at"] - ended < 5 + 2
    label.open()


def test_a_store_that_is_silent_does_not_hold_up_the_worker(caplog: pytest.LogCaptureFixture):
    """Its main process looks for overdue next runs, and has all its children to look after."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with locks_at(f"redis://127.0.0.1:{port}/0"):
            caplog.set_level("DEBUG", "django_latch")
            revival = revive.Revival(flights.app)
            for _ in range(3):
                began = time.monotonic()
                revival.look(flights.app)
                assert time.monotonic() - began < 0.5 + 2
    told = [record.levelname for record in caplog.records if "cannot look" in record.message]
    assert told == ["WARNING", "DEBUG", "DEBUG"]
