"""release_on="commit" where transactions are isolated, fail late, and lose their connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_latch import LatchBusy, latch
from django_latch.models import ApiToken
from tests.integration import audit
from tests.waiting.crowd import Crowd, eventually

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]

THREADS, TIMES = 8, 5


@pytest.fixture
def token() -> ApiToken:
    made = ApiToken(account="ci", scopes="0")
    made.issue()
    return made


def scopes(token: ApiToken) -> str:
    return ApiToken.objects.values_list("scopes", flat=True).get(pk=token.pk)


def in_thread(do: Callable[..., Any]) -> Callable[..., Any]:
    """Let a thread close the connection that Django opened for it."""

    def run(*args: object) -> Any:
        try:
            return do(*args)
        finally:
            connection.close()

    return run


def count_up(token: ApiToken) -> None:
    """Read and write, with the lock inside the transaction."""
    for _ in range(TIMES):
        with transaction.atomic(), latch("row", release_on="commit", timeout=30):
            value = int(scopes(token))
            ApiToken.objects.filter(pk=token.pk).update(scopes=str(value + 1))


def test_no_update_is_lost(raw: redis.Redis, token: ApiToken, crowd: Crowd) -> None:
    for _ in range(THREADS):
        crowd.start(in_thread(count_up), token)
    crowd.results()
    assert scopes(token) == str(THREADS * TIMES)
    audit.assert_free(raw, "row")


def test_who_waited_sees_what_was_committed(
    raw: redis.Redis, token: ApiToken, crowd: Crowd
) -> None:
    @in_thread
    def look() -> str:
        with latch("row", timeout=30):
            return scopes(token)

    with transaction.atomic():
        with latch("row", release_on="commit", timeout=0):
            ApiToken.objects.filter(pk=token.pk).update(scopes="new")
        crowd.queue_up(look, name="row")
    assert crowd.results() == ["new"]
    audit.assert_free(raw, "row")


def test_a_release_before_the_commit_shows_the_next_holder_what_was(
    token: ApiToken, crowd: Crowd
) -> None:
    """What the option is for: this is how it goes without it, and why there is a warning."""

    @in_thread
    def look() -> str:
        with latch("row", timeout=0):
            return scopes(token)

    with transaction.atomic():
        with pytest.warns(RuntimeWarning, match="open atomic block"), latch("row", timeout=0):
            ApiToken.objects.filter(pk=token.pk).update(scopes="new")
        crowd.start(look)
        assert crowd.results() == ["0"]


def test_a_constraint_that_fails_frees_the_lock(raw: redis.Redis) -> None:
    """On PostgreSQL only the commit finds it."""

    def fail() -> None:
        with transaction.atomic(), latch("row", release_on="commit", timeout=0):
            entry = LogEntry(user_id=987654, action_flag=CHANGE, object_repr="x")
            entry.save(force_insert=True)

    with pytest.raises(IntegrityError):
        fail()
    eventually(lambda: audit.assert_free(raw, "row"))


def test_a_connection_that_breaks_frees_the_lock(
    raw: redis.Redis, token: ApiToken, elsewhere: BaseDatabaseWrapper
) -> None:
    def fail() -> None:
        with transaction.atomic():
            with latch("row", release_on="commit", timeout=0):
                ApiToken.objects.filter(pk=token.pk).update(scopes="new")
            break_off(elsewhere)
            with pytest.raises(LatchBusy):
                latch("row", timeout=0).acquire()

    with pytest.raises(DatabaseError):
        fail()
    eventually(lambda: audit.assert_free(raw, "row"))
    connection.close()
    assert scopes(token) == "0"


def break_off(elsewhere: BaseDatabaseWrapper) -> None:
    """Let the server end this thread's connection."""
    if connection.vendor == "postgresql":
        me, end = "SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%s)"
    else:
        me, end = "SELECT CONNECTION_ID()", "KILL CONNECTION %s"
    with connection.cursor() as mine, elsewhere.cursor() as theirs:
        mine.execute(me)
        theirs.execute(end, mine.fetchone())


def test_a_deadlock_in_the_database_frees_the_loser_s_lock(raw: redis.Redis, crowd: Crowd) -> None:
    rows = [ApiToken(account=name, scopes="0") for name in "ab"]
    for row in rows:
        row.issue()
    both = threading.Barrier(2)

    @in_thread
    def cross(name: str, *ordered: ApiToken) -> str:
        try:
            with transaction.atomic():
                with latch(name, release_on="commit", timeout=0):
                    ApiToken.objects.filter(pk=ordered[0].pk).update(scopes=name)
                both.wait(20)
                ApiToken.objects.filter(pk=ordered[1].pk).update(scopes=name)
        except DatabaseError:
            return "lost"
        return name

    crowd.start(cross, "one", *rows)
    crowd.start(cross, "two", *reversed(rows))
    results = crowd.results()
    assert results.count("lost") == 1
    (winner,) = {"one", "two"} & set(results)
    assert {scopes(row) for row in rows} == {winner}
    for name in ("one", "two"):
        eventually(lambda name=name: audit.assert_free(raw, name))
