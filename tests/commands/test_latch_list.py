from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from tests.holding import Hold


def run(*args: str, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("latch_list", *args, stdout=out, stderr=err, no_color=True, **options)
    return out.getvalue(), err.getvalue()


def names(text: str) -> list[str]:
    return [record["name"] for record in json.loads(text)]


def test_a_table_for_people(hold: Hold) -> None:
    lease = hold("sync:42", task="billing.sync", worker="w1@web3", pid=77)
    out, err = run()
    head, line = out.splitlines()
    assert head.split("  ")[0] == "NAME"
    for cell in ("sync:42", "held", "billing.sync on w1@web3 (pid 77)", str(lease.fence)):
        assert cell in line
    assert lease.token not in out
    assert err == ""


def test_a_line_for_every_holder(hold: Hold) -> None:
    fences = [str(hold("mail", limit=2).fence) for _ in range(2)]
    _, *lines = run()[0].splitlines()
    assert [fence in line for fence, line in zip(fences, lines, strict=True)] == [True, True]


def test_json_for_programs(hold: Hold) -> None:
    lease = hold("sync:42", task="billing.sync", ttl=90)
    out, err = run(format="json")
    (record,) = json.loads(out)
    assert (record["name"], record["waiters"], record["limit"]) == ("sync:42", 0, 1)
    (holder,) = record["holders"]
    assert (holder["fence"], holder["fingerprint"]) == (lease.fence, lease.fingerprint)
    assert holder["owner"]["task"] == "billing.sync"
    since = datetime.fromisoformat(holder["acquired_at"])
    assert since.utcoffset() == datetime.now(UTC).utcoffset()
    assert 80 < holder["expires_in"] <= 90
    assert lease.token not in out
    assert err == ""


@pytest.mark.parametrize("format_", ["table", "json"])
def test_nothing_held(format_: str) -> None:
    assert run(format=format_) == ("" if format_ == "table" else "[]\n", "No lock is held.\n")
    assert run(format=format_, verbosity=0)[1] == ""


def test_soonest_expiry_first_and_a_limit(hold: Hold) -> None:
    for name, ttl in (("b", 300), ("c", 100), ("a", 200)):
        hold(name, ttl=ttl)
    assert names(run(format="json")[0]) == ["c", "a", "b"]
    out, err = run("--limit=2", format="json")
    assert names(out) == ["c", "a"]
    assert err == "Only the first 2 are listed; see --limit.\n"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("sync:*", ["sync:1", "sync:22"]),
        ("sync:?", ["sync:1"]),
        ("*2*", ["report[12]", "sync:22"]),
        ("report[12]", ["report[12]"]),
        ("SYNC:1", []),
        ("sync", []),
        ("a\\b.+", ["a\\b.+"]),
    ],
)
def test_a_pattern_needs_no_escapes(hold: Hold, pattern: str, found: list[str]) -> None:
    for name in ("sync:1", "sync:22", "report1", "report[12]", "a\\b.+", "axb.+"):
        hold(name)
    assert sorted(names(run(pattern, format="json")[0])) == found


def test_a_pattern_of_many_stars_takes_no_time(hold: Hold) -> None:
    hold("a" * 255)
    assert names(run("a*" * 60 + "b", format="json")[0]) == []


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", "99999999"])
def test_a_wrong_limit(limit: str) -> None:
    with pytest.raises(CommandError, match="limit"):
        run(f"--limit={limit}")


def test_no_control_character_reaches_the_terminal(hold: Hold) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\r\nx\x9b31m"
    facts = dict.fromkeys(("label", "task", "worker", "host", "args"), evil)
    hold("name", **facts)
    for format_ in ("table", "json"):
        out, err = run(format=format_)
        assert all(char == "\n" or char.isprintable() for char in out + err)


@pytest.mark.parametrize("language", ["de", "ar"])
def test_another_language_and_zone(hold: Hold, language: str) -> None:
    hold("name")
    with override_settings(LANGUAGE_CODE=language, USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        (record,) = json.loads(run(format="json")[0])
    assert record["holders"][0]["acquired_at"].endswith("+00:00")
