"""Calls out of Django: requests in a transaction, tests with eager tasks."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, TestCase, override_settings
from django.urls import path

from django_latch import Latch
from tests import servers
from tests.celery import flights, harness


def enqueue(request: HttpRequest, label: str, queue: str, how: str) -> HttpResponse:
    """Call a task twice inside the request's transaction, and maybe fail."""
    assert connection.in_atomic_block
    for _ in range(2):
        if how == "on commit":
            flights.queued.apply_async_on_commit((label,), queue=queue)
        else:
            flights.queued.apply_async((label,), queue=queue)
    if "fail" in request.GET:
        raise ZeroDivisionError
    return HttpResponse("ok")


urlpatterns = [path("<str:label>/<str:queue>/<str:how>/", enqueue)]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    with override_settings(ROOT_URLCONF=__name__):
        yield Client(raise_request_exception=False)


def messages(queue: str) -> int:
    with redis.Redis.from_url(servers.url(harness.BROKER)) as broker:
        return int(broker.llen(queue))


@pytest.mark.django_db(transaction=True)
class TestAtomicRequests:
    @pytest.mark.parametrize("how", ["on commit", "at once"])
    def test_a_request_that_succeeds_sends_one(self, client: Client, how: str):
        name = uuid4().hex[:8]
        assert client.get(f"/{name}/{name}/{how}/").status_code == 200
        assert messages(name) == 1
        assert Latch(f"queued:{name}").inspect() is not None

    def test_a_request_that_fails_leaves_nothing(self, client: Client):
        name = uuid4().hex[:8]
        assert client.get(f"/{name}/{name}/on commit/?fail").status_code == 500
        assert messages(name) == 0
        assert Latch(f"queued:{name}").inspect() is None

    def test_without_on_commit_message_and_lock_stay_together(self, client: Client):
        name = uuid4().hex[:8]
        assert client.get(f"/{name}/{name}/at once/?fail").status_code == 500
        assert messages(name) == 1
        assert Latch(f"queued:{name}").inspect() is not None


class TestEager(TestCase):
    """Under TestCase every test is in a transaction that never commits."""

    def setUp(self) -> None:
        flights.app.conf.task_always_eager = True
        self.name = uuid4().hex[:8]

    def tearDown(self) -> None:
        flights.app.conf.task_always_eager = False

    def test_a_call_runs_under_its_lock(self) -> None:
        assert flights.member.delay(self.name).get() == "done"
        with Latch(f"member:{self.name}"):
            assert flights.member.delay(self.name).get() == "no"
        assert Latch(f"member:{self.name}").inspect() is None

    def test_on_commit(self) -> None:
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            flights.member.delay_on_commit(self.name)
            flights.member.delay_on_commit(self.name)
        assert len(callbacks) == 2
        assert Latch(f"member:{self.name}").inspect() is None

    def test_retries_and_next_runs_without_a_queue(self) -> None:
        assert flights.tries.delay(self.name, 3).get() == 3
        with Latch(f"newest:{self.name}"):
            assert flights.newest.delay(self.name).state == "FAILURE"
