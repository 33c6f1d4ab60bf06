"""Locks and database transactions: release_on="commit", and the warning where it is missing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, TestCase, override_settings
from django.urls import path

from django_latch import Latch, LatchBusy, LatchLost, latch
from tests import servers
from tests.integration import audit
from tests.integration.until import until
from tests.waiting.crowd import Crowd, eventually

database = pytest.mark.django_db(transaction=True)


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": 0, "release_on": "commit", **options})


def held() -> bool:
    return lock().inspect() is not None


class Undo(Exception):
    """Rolls a transaction back."""


@pytest.fixture
def other(tmp_path: Path, django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """A second database. Nothing is written, so no test case need put things right."""
    default = connections.databases["default"]
    # On a server a second connection to the first one will do.
    name = str(tmp_path / "other.sqlite3") if connection.vendor == "sqlite" else default["NAME"]
    connections.databases["other"] = {**default, "NAME": name}
    with django_db_blocker.unblock():
        yield "other"
    connections["other"].close()
    del connections["other"]
    del connections.databases["other"]


@database
def test_without_a_transaction_it_is_released_at_the_end_of_the_block(raw: redis.Redis) -> None:
    with lock():
        pass
    audit.assert_free(raw, "job")


@database
def test_a_commit_releases(raw: redis.Redis) -> None:
    told: list[bool] = []
    with transaction.atomic():
        transaction.on_commit(lambda: told.append(held()))  # the transaction has been committed
        with lock() as lease:
            pass
        assert held()
        lease.ensure_held()
        with pytest.raises(LatchBusy):
            lock().acquire()
        transaction.on_commit(lambda: told.append(held()))
    assert told == [True, False]
    audit.assert_free(raw, "job")


@database
def test_a_rollback_releases(raw: redis.Redis) -> None:
    def fail() -> None:
        with transaction.atomic():
            with lock():
                pass
            assert held()
            raise Undo

    with pytest.raises(Undo):
        fail()
    eventually(lambda: audit.assert_free(raw, "job"))


@database
def test_a_rollback_without_an_error_releases(raw: redis.Redis) -> None:
    with transaction.atomic():
        with lock():
            pass
        transaction.set_rollback(True)
        assert held()
    eventually(lambda: audit.assert_free(raw, "job"))


@database
def test_an_error_in_the_block_that_leaves_the_transaction(raw: redis.Redis) -> None:
    def fail() -> None:
        with transaction.atomic(), lock():
            raise Undo

    with pytest.raises(Undo):
        fail()
    eventually(lambda: audit.assert_free(raw, "job"))


@database
def test_an_error_in_the_block_that_the_transaction_survives(raw: redis.Redis) -> None:
    with transaction.atomic():
        with pytest.raises(Undo), lock():
            raise Undo
        assert held()  # what was written before the error may still be committed
    audit.assert_free(raw, "job")


@database
def test_a_savepoint_that_is_rolled_back_releases(raw: redis.Redis) -> None:
    def fail() -> None:
        with transaction.atomic():
            with lock():
                pass
            raise Undo

    with transaction.atomic():
        with pytest.raises(Undo):
            fail()
        until(lambda: not held())
    audit.assert_free(raw, "job")


@database
def test_a_savepoint_that_is_kept_does_not(raw: redis.Redis) -> None:
    with transaction.atomic():
        with transaction.atomic():
            with lock():
                pass
            assert held()
        assert held()
    audit.assert_free(raw, "job")


@database
def test_a_savepoint_after_the_block_changes_nothing(raw: redis.Redis) -> None:
    def fail() -> None:
        with transaction.atomic():
            raise Undo

    with transaction.atomic():
        with lock():
            pass
        with pytest.raises(Undo):
            fail()
        assert held()
    audit.assert_free(raw, "job")


@database
def test_the_outer_transaction_is_rolled_back(raw: redis.Redis) -> None:
    def fail() -> None:
        with transaction.atomic():
            with transaction.atomic(), lock():
                pass
            raise Undo

    with pytest.raises(Undo):
        fail()
    eventually(lambda: audit.assert_free(raw, "job"))


@database
def test_blocks_within_blocks(raw: redis.Redis) -> None:
    with transaction.atomic():
        with lock(), latch("inner", timeout=0, release_on="commit"):
            pass
        assert held()
        assert latch("inner").inspect() is not None
    audit.assert_nothing_held(raw)


@database
def test_the_recipe_needs_no_option_and_warns_of_nothing(raw: redis.Redis) -> None:
    with lock(release_on="exit"), transaction.atomic():
        assert held()
    audit.assert_free(raw, "job")


@database
def test_it_is_renewed_until_the_transaction_ends(raw: redis.Redis) -> None:
    with transaction.atomic():
        with lock(ttl=0.3):
            pass
        time.sleep(0.9)
        assert held()
    assert audit.kinds(raw, "job")[-1] == "released"
    assert "expired" not in audit.kinds(raw, "job")


@database
def test_a_lease_lost_before_the_commit_keeps_no_hook_from_running(
    raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    with transaction.atomic():
        with lock():
            pass
        raw.delete(audit.key("R", "job"))
        transaction.on_commit(lambda: ran.append("the other hook"))
    assert ran == ["the other hook"]
    assert "'job' was not released" in caplog.text
    raw.zrem(audit.key("index"), "job")


@database
def test_a_lease_lost_in_the_block_is_raised_before_the_commit(raw: redis.Redis) -> None:
    def lose() -> None:
        with transaction.atomic(), lock(ttl=0.05, heartbeat=False):
            time.sleep(0.06)

    with pytest.raises(LatchLost):
        lose()


def test_two_databases_the_last_one_releases(raw: redis.Redis, other: str) -> None:
    with transaction.atomic():
        with transaction.atomic(using=other):
            with lock():
                pass
            assert held()
        assert held()  # the default one is still open
    audit.assert_free(raw, "job")


@pytest.mark.parametrize("inner", ["other", "default"])
def test_two_databases_one_of_them_rolled_back(raw: redis.Redis, other: str, inner: str) -> None:
    outer = {"other": "default", "default": "other"}[inner]

    def fail() -> None:
        with transaction.atomic(using=inner):
            with lock():
                pass
            raise Undo

    with transaction.atomic(using=outer):
        with pytest.raises(Undo):
            fail()
        assert held()
    audit.assert_free(raw, "job")


def test_only_the_open_database_counts(raw: redis.Redis, other: str) -> None:
    with transaction.atomic(using=other):
        with lock():
            pass
        assert held()
    audit.assert_free(raw, "job")


@database
def test_a_transaction_of_another_thread_does_not_count(raw: redis.Redis, crowd: Crowd) -> None:
    def use() -> None:
        with lock():
            pass
        assert not held()

    with transaction.atomic():
        crowd.start(use)
        crowd.results()


@database
def test_a_decorated_function_and_several_locks(raw: redis.Redis) -> None:
    @latch("report:{year}", release_on="commit", timeout=0)
    def report(year: int) -> int:
        return year

    with transaction.atomic():
        assert report(2026) == 2026
        with Latch.many("a", "b", release_on="commit", timeout=0):
            pass
        for name in ("report:2026", "a", "b"):
            assert latch(name).inspect() is not None
    audit.assert_nothing_held(raw)


# ATOMIC_REQUESTS


def saving(request: HttpRequest) -> HttpResponse:
    with lock():
        pass
    assert connection.in_atomic_block
    return HttpResponse(str(held()))


def failing(request: HttpRequest) -> HttpResponse:
    saving(request)
    raise Undo


urlpatterns = [path("saving", saving), path("failing", failing)]


@database
@override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[])
def test_a_view_in_a_transaction_of_its_own(
    raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    client = Client(raise_request_exception=False)
    assert client.get("/saving").content == b"True"
    audit.assert_free(raw, "job")
    assert client.get("/failing").status_code == 500
    eventually(lambda: audit.assert_free(raw, "job"))


# Django's TestCase


class InTestCase(TestCase):
    """Runs inside transactions of Django's own, which no code under test has opened."""

    def setUp(self) -> None:
        self.raw = redis.Redis.from_url(servers.url(), decode_responses=True)
        self.addCleanup(self.raw.close)

    def test_its_own_transaction_does_not_count(self) -> None:
        assert connection.in_atomic_block
        with lock():
            pass
        audit.assert_free(self.raw, "job")
        with lock(release_on="exit"):  # and is nothing to warn of
            pass

    def test_the_commit_of_the_code_under_test_is_djangos_to_simulate(self) -> None:
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            with lock():
                pass
            assert held()
        audit.assert_free(self.raw, "job")


# The warning


def used() -> None:
    with lock(release_on="exit"):
        pass


@lock(release_on="exit")
def decorated() -> None:
    pass


def released() -> None:
    lock(release_on="exit").acquire().release()


def several() -> None:
    with Latch.many("a", "job", timeout=0):
        pass


def several_released() -> None:
    Latch.many("a", "job", timeout=0).acquire().release()


@database
@pytest.mark.parametrize("use", [used, decorated, released, several, several_released])
def test_a_lease_that_ends_in_an_open_transaction_warns_where_it_ends(
    raw: redis.Redis, use: Any
) -> None:
    with transaction.atomic(), pytest.warns(RuntimeWarning, match="open atomic block") as caught:
        use()
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    audit.assert_nothing_held(raw)


@database
@pytest.mark.parametrize("use", [used, released, several, several_released])
def test_where_warnings_are_errors_the_lock_is_free_all_the_same(
    raw: redis.Redis, use: Any
) -> None:
    with warnings.catch_warnings(), transaction.atomic():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            use()
        audit.assert_nothing_held(raw)


@database
def test_an_error_of_the_block_is_not_replaced_by_the_warning(raw: redis.Redis) -> None:
    def fail() -> None:
        with lock(release_on="exit"):
            raise Undo

    with warnings.catch_warnings(), transaction.atomic():
        warnings.simplefilter("error")
        with pytest.raises(Undo):
            fail()
    audit.assert_free(raw, "job")


@database
def test_a_refusal_of_several_warns_of_nothing(raw: redis.Redis) -> None:
    with latch("b"), transaction.atomic(), pytest.raises(LatchBusy):
        Latch.many("a", "b", timeout=0).acquire()


@database
def test_whoever_keeps_the_lease_may_release_it_early(raw: redis.Redis) -> None:
    with transaction.atomic():
        with lock() as lease:
            pass
        with pytest.warns(RuntimeWarning, match="open atomic block"):
            lease.release()
        audit.assert_free(raw, "job")
