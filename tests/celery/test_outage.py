"""The server of the locks is away: before, during and at the end of a run, and when sending."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis

from django_latch import LatchUnavailable, latch
from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.celery import flights, harness
from tests.celery.harness import Label, Worker, result
from tests.integration.aliases import locks_at, timeouts


@pytest.fixture(scope="module")
def locks() -> Iterator[EmbeddedValkey]:
    """A server with nothing but locks."""
    with servers.valkey() as server:
        yield server


@pytest.fixture(scope="module")
def worker(locks: EmbeddedValkey) -> Iterator[Worker]:
    env = {"LATCH_TEST_LOCKS": locks.url}
    with harness.worker(concurrency=2, app="tests.celery.apart", env=env) as started:
        yield started


@pytest.fixture(autouse=True)
def _running(locks: EmbeddedValkey) -> None:
    """Each test begins with a server that runs."""
    locks.stop()
    locks.start()


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


class TestBeforeTheRun:
    def test_raise(self, locks: EmbeddedValkey, worker: Worker, label: Label):
        locks.stop()
        with pytest.raises(LatchUnavailable) as caught:
            result(send(flights.outage_raise, worker, str(label)))
        assert caught.value.reason == "connection"
        label.nothing_left()

    def test_run(self, locks: EmbeddedValkey, worker: Worker, label: Label):
        locks.stop()
        sent = send(flights.outage_run, worker, str(label))
        worker.wait_for(f"outage_run: runs without its lock outage:{label}: ")
        assert label.next("start")["lock"] is None
        told = label.next("task_unguarded", of=":signals")
        assert (told["task"], told["key"]) == (flights.outage_run.name, f"outage:{label}")
        assert (told["reason"], told["side"], told["task_id"]) == ("connection", "run", sent.id)
        label.open()
        assert result(sent) == "done"

    def test_retry(self, locks: EmbeddedValkey, worker: Worker, label: Label):
        locks.stop()
        sent = send(flights.outage_retry, worker, str(label))
        worker.wait_for("outage_retry: sent again for in")
        told = label.next("task_deferred", of=":signals")
        assert (told["key"], told["reason"]) == (f"outage:{label}", "unreachable")
        assert told["task_id"] == sent.id
        assert 0.5 <= told["countdown"] <= 1
        locks.start()
        start = label.next("start")
        assert (start["lock"], start["retries"]) == (f"outage:{label}", 0)
        label.open()
        assert result(sent) == "done"

    def test_retries_end(self, locks: EmbeddedValkey, worker: Worker, label: Label):
        locks.stop()
        with pytest.raises(LatchUnavailable):
            result(send(flights.outage_impatient, worker, str(label)))

    def test_the_lock_that_came_with_the_message_stays_with_it(
        self, locks: EmbeddedValkey, worker: Worker, label: Label
    ):
        with locks_at(locks.url):
            sent = send(flights.outage_both, worker, str(label), countdown=1)
            freeze(locks)
            worker.wait_for("outage_both: sent again for in", 30)
            thaw(locks)
            assert label.next("start")["id"] == sent.id
            assert send(flights.outage_both, worker, str(label)).id == sent.id
            label.open()
            assert result(sent) == "done"

    def test_a_link_is_sent_all_the_same(self, locks: EmbeddedValkey, worker: Worker, label: Label):
        """To refuse it would make the task fail whose link it is."""
        link = flights.outage_both.si(str(label)).set(queue=worker.queue)
        locks.stop()
        assert result(send(flights.echo, worker, 5, link=link)) == 5
        worker.wait_for("outage_both: sent without its lock")
        worker.wait_for("outage_both: sent again for in")
        locks.start()
        assert label.next("start")["lock"] == f"outage:{label}"
        label.open()
        label.next("end")


class TestDuringTheRun:
    def test_the_result_of_the_task_stands(
        self, locks: EmbeddedValkey, worker: Worker, label: Label
    ):
        sent = send(flights.outage_retry, worker, str(label))
        label.next("start")
        locks.stop()
        label.open()
        assert result(sent) == "done"
        worker.wait_for("outage_retry: could not give back the lock")

    def test_the_error_of_the_task_stands(
        self, locks: EmbeddedValkey, worker: Worker, label: Label
    ):
        sent = send(flights.outage_error, worker, str(label))
        label.next("start")
        locks.stop()
        label.open()
        with pytest.raises(KeyError, match="its own"):
            result(sent)

    def test_it_comes_back_with_nothing_in_it(
        self, locks: EmbeddedValkey, worker: Worker, label: Label
    ):
        sent = send(flights.outage_retry, worker, str(label))
        label.next("start")
        locks.stop()
        locks.start()
        label.open()
        assert result(sent) == "done"
        with locks_at(locks.url):
            assert flights.outage_retry.single_flight.lock(str(label)).inspect() is None


def test_no_answer_in_the_time_to_wait_is_no_busy_lock(locks: EmbeddedValkey) -> None:
    with locks_at(locks.url, **timeouts(5)):
        latch("warm up", timeout=0).acquire().release()
        os.kill(locks.pid, signal.SIGSTOP)
        try:
            outcome = flights.outage_wait.apply(("anybody",))
        finally:
            os.kill(locks.pid, signal.SIGCONT)
    assert isinstance(outcome.result, LatchUnavailable), outcome.result
    assert outcome.state == "FAILURE"


class TestSending:
    @pytest.fixture(autouse=True)
    def away(self, locks: EmbeddedValkey) -> Iterator[None]:
        with locks_at(locks.url):
            locks.stop()
            yield

    def test_raise(self, label: Label):
        queue = f"q{uuid4().hex[:8]}"
        with pytest.raises(LatchUnavailable):
            flights.outage_both.apply_async((str(label),), queue=queue)
        assert messages(queue) == 0

    def test_run(self, label: Label, caplog: pytest.LogCaptureFixture):
        queue = f"q{uuid4().hex[:8]}"
        caplog.set_level(logging.WARNING, "django_latch")
        sent = flights.outage_both_run.apply_async((str(label),), queue=queue)
        assert messages(queue) == 1
        (record,) = [one for one in caplog.records if hasattr(one, "latch")]
        assert f"outage_both_run: sent without its lock outage:{label}: " in record.message
        assert record.latch == {
            "task": flights.outage_both_run.name,
            "key": f"outage:{label}",
            "reason": "connection",
            "holder": None,
            "task_id": sent.id,
            "side": "enqueue",
        }
        told = label.next("task_unguarded", of=":signals")
        assert record.latch.items() <= told.items()

    def test_a_task_that_takes_its_lock_later_needs_no_server(self, label: Label):
        queue = f"q{uuid4().hex[:8]}"
        flights.outage_retry.apply_async((str(label),), queue=queue)
        assert messages(queue) == 1


def freeze(locks: EmbeddedValkey) -> None:
    """Answer nobody, and keep the data."""
    with redis.Redis.from_url(locks.url) as client:
        client.config_set("requirepass", "changed")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def thaw(locks: EmbeddedValkey) -> None:
    """Answer again."""
    with redis.Redis.from_url(locks.url, password="changed") as client:
        client.config_set("requirepass", "")


def messages(queue: str) -> int:
    with redis.Redis.from_url(servers.url(harness.BROKER)) as broker:
        return int(broker.llen(queue))
