"""The lock from the moment a call is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import redis
from celery import chain, chord, group
from celery.result import AsyncResult
from django.db import transaction
from kombu.exceptions import OperationalError

from django_latch import Latch, LatchBusy, LatchTimeout, signals
from django_latch.celery import outgoing, queued
from django_latch.celery.header import HEADER, read
from django_latch.celery.times import queue_seconds
from django_latch.core.owner import Owner, record
from tests import servers
from tests.celery import flights, harness
from tests.celery.harness import Label, Worker, result, until
from tests.integration.aliases import latch_settings
from tests.integration.programs import FORKS, PREAMBLE, program


@pytest.fixture
def worker(flights_worker: Worker) -> Worker:
    flights_worker.forget()
    return flights_worker


@pytest.fixture
def nowhere() -> str:
    """A queue that nobody reads."""
    return f"q{uuid4().hex[:8]}"


FORKING = """
from django_latch.celery import single_flight
from tests.celery import flights

@single_flight(key="forking:{label}")
def run(label):
    current_lease().renew()

flights.queued.apply_async((LABEL,), queue=QUEUE)
say("sent")
run(LABEL)
say("ran")
"""


def messages(queue: str) -> int:
    with redis.Redis.from_url(servers.url(harness.BROKER)) as broker:
        return int(broker.llen(queue))


def holder(task, *args):
    seen = task.single_flight.lock(*map(str, args)).inspect()
    return seen and seen.holder


class TestSending:
    def test_a_second_call_sends_nothing_and_returns_the_first_one_s_result(
        self, nowhere: str, label: Label
    ):
        first = flights.queued.apply_async((str(label),), queue=nowhere)
        others = [flights.queued.apply_async((str(label), 7), queue=nowhere) for _ in range(19)]
        assert all(isinstance(other, AsyncResult) for other in others)
        assert {other.id for other in others} == {first.id}
        assert messages(nowhere) == 1
        seen = holder(flights.queued, label)
        assert (seen.owner.task_id, seen.owner.pid) == (first.id, 0)
        assert seen.owner.args == f"('{label}',) {{}}"

    def test_another_key_is_another_lock(self, nowhere: str, label: Label):
        flights.queued.apply_async((str(label),), queue=nowhere)
        flights.queued.apply_async((f"{label}-2",), queue=nowhere)
        assert messages(nowhere) == 2

    def test_raise(self, nowhere: str, label: Label):
        first = flights.both.apply_async((str(label),), queue=nowhere)
        with pytest.raises(LatchBusy) as caught:
            flights.both_raising.apply_async((str(label),), queue=nowhere)
        assert caught.value.holder["task_id"] == first.id
        assert messages(nowhere) == 1

    def test_a_holder_that_is_no_job_leaves_a_finished_result(self, nowhere: str, label: Label):
        with Latch(f"both:{label}"):
            refused = flights.both.apply_async((str(label),), queue=nowhere)
        assert (refused.ready(), refused.get()) == (True, "no")
        assert messages(nowhere) == 0

    def test_it_tells_why(self, nowhere: str, label: Label, caplog: pytest.LogCaptureFixture):
        told: list[dict] = []

        def receive(**facts):
            told.append(facts)

        caplog.set_level("INFO", "django_latch")
        signals.task_skipped.connect(receive)
        first = flights.queued.apply_async((str(label),), queue=nowhere)
        flights.queued.apply_async((str(label),), queue=nowhere)
        signals.task_skipped.disconnect(receive)
        (facts,) = told
        assert (facts["reason"], facts["key"]) == ("not_sent", f"queued:{label}")
        assert facts["holder"]["task_id"] == first.id
        assert f"not sent, 'queued:{label}' is held by" in caplog.text

    def test_wrong_arguments_take_no_lock(self, label: Label):
        with pytest.raises(TypeError, match="positional argument"):
            flights.queued.delay()
        assert holder(flights.queued, label) is None

    def test_arguments_that_only_celery_refuses_are_no_conflict(self, nowhere: str, label: Label):
        first = flights.narrow.apply_async((str(label),), queue=nowhere)
        with pytest.raises(TypeError, match="positional argument"):
            flights.narrow.apply_async((str(label), 2), queue=nowhere)
        assert flights.narrow.apply_async((str(label),), queue=nowhere).id == first.id

    def test_hidden_arguments_stay_hidden(self, nowhere: str, label: Label):
        flights.queued.apply_async((str(label),), queue=nowhere, argsrepr="", kwargsrepr="***")
        assert holder(flights.queued, label).owner.args == " ***"

    def test_whoever_sent_it_may_wait_for_it(self, nowhere: str, label: Label):
        """No thread has the lock, so nobody waits for themselves."""
        with latch_settings(DEADLOCKS=True, SLICE=0.1, LIVE=1.1, CLAIM=1.1):
            flights.queued.apply_async((str(label),), queue=nowhere)
            waiting = flights.queued.single_flight.lock(str(label)).replace(timeout=2.5)
            with pytest.raises(LatchTimeout):
                waiting.acquire()

    def test_a_forked_child_gives_nothing_back(self, nowhere: str, label: Label):
        """A receiver forks while the lock is taken, and the child's exit goes through us."""
        setup = f"{PREAMBLE}\n{FORKS}\nLABEL, QUEUE = {str(label)!r}, {nowhere!r}\n"
        with program(FORKING, setup=setup) as parent:
            parent.expect("sent")
            assert holder(flights.queued, label) is not None
            parent.expect("ran")

    def test_a_broker_that_refuses_leaves_no_lock(self, label: Label):
        with (
            flights.app.connection_for_write("redis://127.0.0.1:1/0") as broker,
            pytest.raises(OperationalError),
        ):
            flights.queued.apply_async((str(label),), connection=broker, retry=False)
        assert holder(flights.queued, label) is None

    def test_an_interrupt_leaves_no_lock(self, label: Label, monkeypatch: pytest.MonkeyPatch):
        def interrupted(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(flights.app, "send_task", interrupted)
        with pytest.raises(KeyboardInterrupt):
            flights.queued.delay(str(label))
        assert holder(flights.queued, label) is None

    def test_the_secret_is_nowhere_to_be_seen(
        self, nowhere: str, label: Label, raw: redis.Redis, caplog: pytest.LogCaptureFixture
    ):
        caplog.set_level("DEBUG")
        flights.queued.apply_async((str(label),), queue=nowhere)
        flights.queued.apply_async((str(label),), queue=nowhere)
        with redis.Redis.from_url(servers.url(harness.BROKER), decode_responses=True) as broker:
            message = broker.lrange(nowhere, 0, 0)[0]
        headers = json.loads(message)["headers"]
        carried = read(headers, headers["id"])
        assert len(carried.token) == 32
        assert carried.token not in repr(carried) + caplog.text

    def test_a_run_that_has_detached_its_lease_is_no_job_in_the_queue(self):
        run = Owner.from_json(record("a", task="a", task_id="1", worker="w"))
        assert not queued.waits(replace(run, pid=0))
        assert queued.waits(Owner.from_json(record("a", process=False, task="a", task_id="1")))

    @pytest.mark.parametrize(
        ("options", "seconds"),
        [
            ({}, 100),
            ({"countdown": 50}, 150),
            ({"eta": timedelta(seconds=1000)}, 1100),
            ({"expires": 30}, 35),
            ({"expires": timedelta(seconds=500), "countdown": 50}, 505),
        ],
    )
    def test_how_long_it_may_wait(self, nowhere: str, label: Label, options, seconds):
        moments = {
            name: datetime.now(UTC) + value if isinstance(value, timedelta) else value
            for name, value in options.items()
        }
        flights.queued.apply_async((str(label),), queue=nowhere, **moments)
        assert seconds - 10 < holder(flights.queued, label).expires_in <= seconds

    def test_never_longer_than_the_setting_allows(self, nowhere: str, label: Label, settings):
        settings.DJANGO_LATCH = {**settings.DJANGO_LATCH, "MAX_TTL": 200}
        flights.queued.apply_async((str(label),), queue=nowhere, countdown=5000)
        assert 190 < holder(flights.queued, label).expires_in <= 200

    def test_a_call_without_the_lock(self, nowhere: str, label: Label):
        flights.queued.apply_async((str(label),), queue=nowhere)
        flights.queued.apply_async((str(label),), queue=nowhere, single_flight=False)
        assert messages(nowhere) == 2

    def test_the_same_job_again_is_sent(self, nowhere: str, label: Label):
        for _ in range(2):
            flights.queued.apply_async((str(label),), queue=nowhere, task_id=f"mine-{label}")
        assert messages(nowhere) == 2

    @pytest.mark.parametrize("canvas", [group, chain, chord])
    def test_members_of_a_canvas_are_sent(
        self, nowhere: str, label: Label, canvas, caplog: pytest.LogCaptureFixture
    ):
        outgoing._warn_of_member.cache_clear()
        one = flights.queued.si(str(label)).set(queue=nowhere)
        flights.queued.apply_async((str(label),), queue=nowhere)
        if canvas is chord:
            chord([one, one.clone()])(one.clone())
        else:
            canvas(one, one.clone()).apply_async()
        assert messages(nowhere) == (2 if canvas is chain else 3)
        assert caplog.text.count("at='enqueue' locks no member of a chain") == 1

    def test_limit(self, nowhere: str, label: Label):
        sent = [flights.queued_pair.apply_async((str(label),), queue=nowhere) for _ in range(4)]
        assert messages(nowhere) == 2
        assert sent[0].id != sent[1].id
        assert {sent[2].id, sent[3].id} <= {sent[0].id, sent[1].id}


class TestQueued:
    """at="enqueue": free as soon as the run starts."""

    def test_a_call_during_the_run_queues_one_more(self, worker: Worker, label: Label):
        first = flights.queued.apply_async((str(label),), queue=worker.queue)
        assert label.next("start")["lock"] is None
        assert holder(flights.queued, label) is None
        second = flights.queued.apply_async((str(label),), queue=worker.queue)
        assert second.id != first.id
        label.next("start")
        label.open(2)
        assert result(first) == result(second) == "done"

    def test_a_copy_of_the_message_does_not_run_beside_it(self, worker: Worker, label: Label):
        sent = flights.queued_late.apply_async((str(label),), queue=worker.queue)
        headers = label.next("start")["headers"]
        send_copy(flights.queued_late, label, worker, sent.id, headers)
        worker.wait_for("queued_late: sent again for in")
        label.open()
        label.next("end")
        worker.wait_for("another copy of this message has done the work")
        assert result(sent) == "done"
        label.nothing_left()


def send_copy(task, label: Label, worker: Worker, task_id: str, headers) -> None:
    """What a broker does that takes a message for lost."""
    task.apply_async(
        (str(label),), queue=worker.queue, task_id=task_id, headers={HEADER: headers[HEADER]}
    )


class TestBoth:
    """at="both": from the call to the end of the run."""

    def test_one_record_until_the_end(self, worker: Worker, label: Label):
        flight = flights.both.single_flight
        first = flights.both.apply_async((str(label),), queue=worker.queue, countdown=1)
        assert holder(flights.both, label).owner.task_id == first.id
        assert not flight.is_running(str(label))
        assert label.next("start")["lock"] == f"both:{label}"
        assert flight.is_running(str(label))
        seen = holder(flights.both, label)
        assert (seen.owner.task_id, seen.owner.worker) == (first.id, worker.name)
        assert seen.expires_in < 6
        assert flights.both.apply_async((str(label), 5), queue=worker.queue).id == first.id
        by_name = flights.app.send_task(flights.both.name, (str(label),), queue=worker.queue)
        assert result(by_name) == "no"
        label.open()
        assert result(first) == "done"
        assert holder(flights.both, label) is None
        label.next("end")
        label.nothing_left()

    def test_a_copy_of_the_message_waits_and_ends_quietly(self, worker: Worker, label: Label):
        sent = flights.both_late.apply_async((str(label),), queue=worker.queue)
        headers = label.next("start")["headers"]
        assert headers[HEADER]["token"]
        send_copy(flights.both_late, label, worker, sent.id, headers)
        worker.wait_for("both_late: sent again for in")
        label.open()
        label.next("end")
        worker.wait_for("another copy of this message has done the work")
        send_copy(flights.both_late, label, worker, sent.id, headers)
        worker.wait_for("another copy of this message has done the work")
        assert result(sent) == "done"
        label.nothing_left()

    def test_a_lock_that_expired_in_the_queue_does_not_cancel_the_work(
        self, worker: Worker, label: Label
    ):
        flights.brief.apply_async((str(label),), queue=worker.queue, countdown=0.1)
        label.next("run")
        until(lambda: holder(flights.brief, label) is None)
        sent = flights.brief.apply_async((str(label),), queue=f"{worker.queue}-later")
        until(lambda: holder(flights.brief, label) is None)
        flights.app.control.add_consumer(f"{worker.queue}-later", destination=[worker.name])
        assert label.next("run")["id"] == sent.id
        until(lambda: holder(flights.brief, label) is None)

    def test_retries_pass(self, worker: Worker, label: Label):
        flights.tries.apply_async((str(label), 5), queue=worker.queue)
        # Not the result: Celery may store the state RETRY of a run after its successor's SUCCESS.
        assert [label.next("run")["retries"] for _ in range(6)] == list(range(6))
        until(lambda: holder(flights.tries, label, 5) is None)

    def test_children_inherit_nothing(self, worker: Worker, label: Label):
        flights.mother.apply_async((str(label),), queue=worker.queue)
        mother, child = label.next("mother"), label.next("child")
        assert child["headers"][HEADER]["task_id"] == child["id"] != mother["id"]
        assert child["headers"][HEADER]["token"] != mother["headers"][HEADER]["token"]
        assert child["headers"][HEADER]["key"] == f"child:{label}"
        until(lambda: holder(flights.child, label) is holder(flights.mother, label) is None)


class TestNeverRun:
    def test_revoked(self, worker: Worker, label: Label):
        task_id = f"revoked-{label}"
        flights.app.control.revoke(task_id, destination=[worker.name], reply=True)
        flights.both.apply_async((str(label),), queue=worker.queue, task_id=task_id)
        worker.wait_for(f"freed the lock both:{label}")
        assert holder(flights.both, label) is None
        label.nothing_left()

    def test_expired(self, worker: Worker, label: Label):
        past = datetime.now(UTC) - timedelta(seconds=1)
        flights.both.apply_async((str(label),), queue=worker.queue, expires=past)
        worker.wait_for(f"freed the lock both:{label}")
        assert holder(flights.both, label) is None


@pytest.mark.django_db(transaction=True)
class TestTransactions:
    def test_rollback_leaves_no_message_and_no_lock(self, nowhere: str, label: Label):
        def fail() -> None:
            with transaction.atomic():
                on_commit(flights.queued, label, nowhere)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert messages(nowhere) == 0
        assert holder(flights.queued, label) is None

    def test_two_in_one_transaction_send_one_message(self, nowhere: str, label: Label):
        with transaction.atomic():
            on_commit(flights.queued, label, nowhere)
            on_commit(flights.queued, label, nowhere)
            assert holder(flights.queued, label) is None
        assert messages(nowhere) == 1
        assert holder(flights.queued, label) is not None


def on_commit(task, label: Label, queue: str) -> None:
    task.apply_async_on_commit((str(label),), queue=queue)


def test_a_message_that_the_worker_cannot_read_frees_it(worker: Worker, label: Label):
    flights.both.apply_async((str(label),), queue=worker.queue, serializer="pickle")
    worker.wait_for(f"freed the lock both:{label}")
    assert holder(flights.both, label) is None


def test_revoking_late_leaves_a_running_job_alone(worker: Worker, label: Label):
    sent = flights.both.apply_async((str(label),), queue=worker.queue)
    assert label.next("start")["id"] == sent.id
    flights.app.control.revoke(sent.id, destination=[worker.name], reply=True)
    assert holder(flights.both, label).owner.task_id == sent.id
    label.open()
    label.next("end")  # not the result: Celery 5.6 says at once that it was revoked
    until(lambda: holder(flights.both, label) is None)


def test_times_are_read_as_celery_reads_them(label: Label):
    naive = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=60)
    assert 158 < queue_seconds(flights.queued, {"eta": naive}, 100) <= 160
    assert 158 < queue_seconds(flights.queued, {"eta": naive.isoformat()}, 100) <= 160
    assert queue_seconds(flights.queued, {}, 100) == 100
