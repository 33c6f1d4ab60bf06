"""Locks of celery-once and celery-singleton; tests/exits has the same with the libraries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from django_latch.store.foreign import ForeignKeys
from tests import servers

ONCE = "qo_shop.sync_a-1_b-[3, 'x y']"
OLD_ONCE = "qo_shop.sync_a-2"
SINGLETON = "SINGLETONLOCK_2bf2dfd9f0f13d7e1755753241819219"
OWN_PREFIX = "mine:4ffa8fa392ebdb3bbf552cf32de932cc"
TASK = "468dcfeb-4d22-450e-8fdc-94bf1d3687d6"
DATABASE = 3


@pytest.fixture
def there() -> Iterator[redis.Redis]:
    """A database with locks of both libraries, and with keys that only look alike."""
    client = redis.Redis.from_url(servers.url(DATABASE), decode_responses=True)
    client.flushdb()
    client.set(ONCE, "c7f62390ecd011f1927d02fc00000001", ex=3600)
    client.set(OLD_ONCE, "1767193200", ex=60)
    client.set(SINGLETON, TASK)
    client.set(OWN_PREFIX, TASK)
    client.set("qo_settings", "dark mode")
    client.set("SINGLETONLOCK_README", "not a lock")
    client.rpush("qo_list", "c7f62390ecd011f1927d02fc00000001")
    yield client
    client.flushdb()
    client.close()


def run(command: str, *args: str, **options: Any) -> tuple[list[dict[str, Any]], str]:
    out, err = StringIO(), StringIO()
    url = servers.url(DATABASE)
    call_command(
        command,
        "--foreign",
        f"--url={url}",
        *args,
        format="json",
        stdout=out,
        stderr=err,
        **options,
    )
    return json.loads(out.getvalue()), err.getvalue()


def test_lists_the_locks_of_both_and_nothing_else(there: redis.Redis) -> None:
    records, err = run("latch_list")
    assert {(record["key"], record["library"]) for record in records} == {
        (ONCE, "celery-once"),
        (OLD_ONCE, "celery-once"),
        (SINGLETON, "celery-singleton"),
    }
    ends = {record["key"]: record["expires_in"] for record in records}
    assert ends[SINGLETON] is None
    assert 3590 < ends[ONCE] <= 3600
    assert {record["task_id"] for record in records} == {None, TASK}
    assert err == ""


def test_another_prefix(there: redis.Redis) -> None:
    records, _ = run("latch_list", "--prefix=mine:")
    assert OWN_PREFIX in [record["key"] for record in records]
    assert SINGLETON not in [record["key"] for record in records]


def test_a_pattern_and_a_limit(there: redis.Redis) -> None:
    records, _ = run("latch_list", "qo_*")
    assert [record["key"] for record in records] == sorted([ONCE, OLD_ONCE])
    records, err = run("latch_list", "--limit=1")
    assert len(records) == 1
    assert "Only the first 1" in err


def test_the_table_says_what_never_ends(there: redis.Redis) -> None:
    out = StringIO()
    call_command("latch_list", "--foreign", f"--url={servers.url(DATABASE)}", stdout=out)
    line = next(line for line in out.getvalue().splitlines() if SINGLETON in line)
    assert "never" in line


def test_clears_what_a_pattern_names(there: redis.Redis) -> None:
    records, _ = run("latch_clear", "qo_*", "--no-input")
    assert {record["outcome"] for record in records} == {"deleted"}
    assert not there.exists(ONCE, OLD_ONCE)
    assert there.exists(SINGLETON, "qo_settings", "SINGLETONLOCK_README", "qo_list") == 4


def test_clears_all_of_them(there: redis.Redis) -> None:
    run("latch_clear", "--no-input")
    assert not there.exists(ONCE, OLD_ONCE, SINGLETON)
    assert there.exists(OWN_PREFIX, "qo_settings", "SINGLETONLOCK_README", "qo_list") == 4


def test_a_dry_run_deletes_nothing(there: redis.Redis) -> None:
    records, _ = run("latch_clear", "--dry-run")
    assert {record["outcome"] for record in records} == {"would delete"}
    assert there.exists(ONCE, OLD_ONCE, SINGLETON) == 3


def test_asks_first(there: redis.Redis) -> None:
    with pytest.raises(CommandError, match="no terminal"):
        run("latch_clear")
    assert there.exists(ONCE, OLD_ONCE, SINGLETON) == 3


@pytest.mark.parametrize("now", ["another token", None])
def test_what_was_taken_anew_stays(there: redis.Redis, now: str | None) -> None:
    keys = ForeignKeys(servers.url(DATABASE))
    seen = next(lock for lock in keys.find() if lock.name == SINGLETON)
    there.delete(SINGLETON)
    if now is not None:
        there.set(SINGLETON, now)
    assert keys.drop(seen) is False
    assert there.get(SINGLETON) == now


def test_nothing_there() -> None:
    redis.Redis.from_url(servers.url(DATABASE)).flushdb()
    assert run("latch_list") == ([], "No lock of another library.\n")
    with pytest.raises(CommandError) as caught:
        run("latch_clear", "--no-input")
    assert caught.value.returncode == 3


@pytest.mark.parametrize("option", ["--stale", "--all", "--older-than=1h", "--reason=x"])
def test_what_excludes_each_other(there: redis.Redis, option: str) -> None:
    with pytest.raises(CommandError) as caught:
        run("latch_clear", option, "--no-input")
    assert caught.value.returncode == 2
    assert there.exists(SINGLETON)


@pytest.mark.parametrize("option", ["--url=redis://127.0.0.1", "--prefix=mine:"])
@pytest.mark.parametrize("command", ["latch_list", "latch_clear"])
def test_its_options_are_for_it_only(command: str, option: str) -> None:
    with pytest.raises(CommandError, match="--foreign only") as caught:
        call_command(command, option)
    assert caught.value.returncode == 2


def test_no_server_there() -> None:
    with pytest.raises(CommandError) as caught:
        call_command("latch_list", "--foreign", "--url=redis://:secret@127.0.0.1:1")
    assert caught.value.returncode == 4
    assert "secret" not in str(caught.value)


def test_no_url_there() -> None:
    with pytest.raises(CommandError, match="must be a redis") as caught:
        call_command("latch_list", "--foreign", "--url=http://:secret@127.0.0.1")
    assert "secret" not in str(caught.value)
