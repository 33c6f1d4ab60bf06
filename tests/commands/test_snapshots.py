"""`latch_list --snapshots`."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from django_latch import snapshot
from tests.integration import audit
from tests.snapshot.sweeps import stale


def run(*args: str, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("latch_list", "--snapshots", *args, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_table(raw: redis.Redis) -> None:
    stale(snapshot("health"), "value", raw)
    with pytest.raises(ZeroDivisionError):
        snapshot("front:page", lambda: 1 / 0)
    out, err = run()
    heads, *lines = out.splitlines()
    assert heads.split("  ")[0] == "NAME"
    found = {line.split()[0]: line for line in lines}
    assert found["health"].split()[1] == "stale"
    assert "ZeroDivisionError: division by zero" in found["front:page"]
    assert found["front:page"].split()[1] == "none"
    assert err == ""


def test_json_pattern_and_limit() -> None:
    for name in ("health:north", "health:south", "front"):
        snapshot(name, lambda: 1, fresh_for=60)
    out, _ = run("health:*", format="json")
    rows = json.loads(out)
    assert sorted(row["name"] for row in rows) == ["health:north", "health:south"]
    assert {row["state"] for row in rows} == {"fresh"}
    assert all(0 < row["fresh_for"] <= 60 and row["took"] < 5 for row in rows)
    out, err = run("--limit", "2", format="json")
    assert len(json.loads(out)) == 2
    assert "Only the first 2 are listed" in err


def test_nothing_and_what_excludes_what() -> None:
    assert run() == ("", "Nothing is kept of any snapshot.\n")
    with pytest.raises(CommandError, match="--foreign and --snapshots exclude each other"):
        call_command("latch_list", "--snapshots", "--foreign")


def test_what_was_forgotten_is_not_listed(raw: redis.Redis) -> None:
    shared = snapshot("health")
    shared.get(lambda: 1)
    shared.invalidate()
    assert run()[0] == ""


def test_a_list_that_is_something_else_is_named(raw: redis.Redis) -> None:
    snapshot("health").get(lambda: 1)
    raw.zadd(audit.key("snapshots"), {"foreign": 10**15})
    assert [line.split()[0] for line in run()[0].splitlines()] == ["NAME", "health"]
    raw.set(audit.key("snapshots"), "something else")
    with pytest.raises(CommandError, match=r"snapshots' is a string where a zset belongs"):
        run()
