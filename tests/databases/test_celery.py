"""Messages sent at commit, and a worker that reads what was committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import DataError, transaction

from django_latch import Latch
from django_latch.models import ApiToken
from tests.celery import harness
from tests.databases import app

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def worker(django_db_setup: None) -> Iterator[harness.Worker]:
    with harness.worker(concurrency=4, app="tests.databases.app") as started:
        yield started


@pytest.fixture
def token() -> ApiToken:
    made = ApiToken(account="ci", scopes="")
    made.issue()
    return made


def test_a_job_sent_at_commit_finds_its_row(worker: harness.Worker) -> None:
    with transaction.atomic():
        token = ApiToken(account="in the transaction", scopes="*")
        token.issue()
        app.read.apply_async_on_commit((token.pk,), queue=worker.queue, task_id=f"read-{token.pk}")
        assert Latch(f"read:{token.pk}").inspect() is None  # nothing is sent, nothing is locked
    sent = app.read.AsyncResult(f"read-{token.pk}")
    assert harness.result(sent) == "in the transaction"


def test_a_rollback_sends_nothing_and_locks_nothing(worker: harness.Worker) -> None:
    def fail() -> None:
        with transaction.atomic():
            app.read.apply_async_on_commit((987654,), queue=worker.queue)
            ApiToken(account="x" * 61, scopes="*").issue()  # too long for the column

    with pytest.raises(DataError, match=r"(?i)too long"):
        fail()
    assert Latch("read:987654").inspect() is None


def test_no_update_of_a_job_is_lost(worker: harness.Worker, token: ApiToken) -> None:
    sent = [app.add.apply_async((token.pk,), queue=worker.queue) for _ in range(12)]
    for one in sent:
        assert harness.result(one) is None
    token.refresh_from_db()
    assert token.scopes == "+" * 12
