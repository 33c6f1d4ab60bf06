from __future__ import annotations

import json
import time
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from django_latch import inventory, signals
from django_latch.management.base import parse_duration
from tests.holding import Hold
from tests.integration import audit


def run(*args: str, **options: Any) -> tuple[list[dict[str, Any]], str]:
    out, err = StringIO(), StringIO()
    call_command("latch_clear", *args, format="json", stdout=out, stderr=err, **options)
    return json.loads(out.getvalue()), err.getvalue()


def held() -> list[str]:
    return sorted(lock.name for lock in inventory.page(0, 1000))


def test_alone_it_frees_what_is_provably_dead_and_nothing_else(
    hold: Hold, dead: Callable[[str], int]
) -> None:
    fence = dead("dead")
    hold("alive")
    hold("elsewhere", host="web9", boot_id="another boot", pid=1)
    (record,), err = run()
    assert (record["name"], record["outcome"], record["fence"]) == ("dead", "dead", fence)
    assert held() == ["alive", "elsewhere"]
    assert err == ""
    assert run() == ([], "Nothing is stale.\n")


def test_stale_is_the_same_said_aloud(dead: Callable[[str], int]) -> None:
    dead("dead")
    run("--stale")
    assert held() == []


def test_a_dry_run_changes_nothing(
    hold: Hold, dead: Callable[[str], int], raw: redis.Redis
) -> None:
    dead("dead")
    hold("alive")
    before = raw.info("persistence")["rdb_changes_since_last_save"]
    (record,), _ = run("--dry-run")
    assert (record["name"], record["outcome"]) == ("dead", "would clear: dead")
    records, _ = run("*", "--dry-run")
    assert [record["outcome"] for record in records] == ["would free"] * 2
    assert raw.info("persistence")["rdb_changes_since_last_save"] == before


def test_a_pattern_frees_what_it_names(hold: Hold) -> None:
    for name in ("sync:1", "sync:2", "report[1]", "report1"):
        hold(name)
    records, _ = run("sync:*", "report[1]", "--no-input", "--reason=why not")
    assert sorted(record["name"] for record in records) == ["report[1]", "sync:1", "sync:2"]
    assert {record["outcome"] for record in records} == {"freed"}
    assert held() == ["report1"]


def test_all_frees_everything_and_says_who_and_why(hold: Hold) -> None:
    told: list[dict[str, Any]] = []

    def receiver(**payload: Any) -> None:
        told.append(payload)

    hold("a", limit=2)
    hold("a", limit=2)
    signals.lock_force_released.connect(receiver)
    try:
        records, _ = run("--all", "--noinput", "--reason=deploy")
    finally:
        signals.lock_force_released.disconnect(receiver)
    assert len(records) == 2
    assert held() == []
    assert {(t["name"], t["reason"]) for t in told} == {("a", "deploy")}
    assert told[0]["actor"].startswith("latch_clear@")


@pytest.mark.parametrize("args", [("--all",), ("[abc]ad", "bad", "good", "mad")])
def test_a_lock_that_cannot_be_read_keeps_no_other_from_being_freed(
    raw: redis.Redis, hold: Hold, args: tuple[str, ...]
) -> None:
    hold("good")
    bad = hold("bad", ttl=30)  # it ends first, so it comes first
    hold("mad")
    raw.hset(audit.key("R", "bad"), bad.token, "junk")
    out = StringIO()
    with pytest.raises(CommandError, match="cannot be read") as refused:
        call_command("latch_clear", *args, interactive=False, format="json", stdout=out)
    assert refused.value.returncode == 1
    outcomes = {record["name"]: record for record in json.loads(out.getvalue())}
    assert {name: record["outcome"] for name, record in outcomes.items()} == {
        "bad": "unreadable",
        "good": "freed",
        "mad": "freed",
    }
    assert "R:bad" in outcomes["bad"]["detail"]
    assert run()[0][0]["outcome"] == "repaired"
    assert held() == []


def test_older_than_spares_the_young(hold: Hold) -> None:
    hold("old")
    while inventory.get("old").holder.held_for < 1:
        time.sleep(0.05)
    hold("young")
    hold("other")
    records, _ = run("--older-than=1s", "--no-input")
    assert [record["name"] for record in records] == ["old"]
    assert held() == ["other", "young"]
    with pytest.raises(CommandError, match="No lock matches"):
        run("o*", "--older-than=1h", "--no-input")


@pytest.mark.parametrize(
    "args",
    [("--stale", "--all"), ("--stale", "x"), ("--all", "x"), ("--stale", "--older-than=1h")],
)
def test_what_excludes_each_other(hold: Hold, args: tuple[str, ...]) -> None:
    hold("x")
    with pytest.raises(CommandError) as caught:
        run(*args, "--no-input")
    assert caught.value.returncode == 2
    assert held() == ["x"]


@pytest.mark.parametrize("args", [("x*",), ("--all",), ("--older-than=0",)])
def test_nothing_matched(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="No lock matches") as caught:
        run(*args, "--no-input")
    assert caught.value.returncode == 3


@pytest.mark.parametrize("args", [("x",), ("--all",), ("--older-than=0",)])
def test_refuses_without_a_terminal(
    hold: Hold, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold("x")
    monkeypatch.setattr("sys.stdin", StringIO("yes\n"))
    with pytest.raises(CommandError, match="no terminal"):
        run(*args)
    assert held() == ["x"]


def test_a_lock_acquired_again_meanwhile_stays(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hold("x")
    seen = inventory.scan()
    first.release()
    second = hold("x")
    monkeypatch.setattr(inventory, "scan", lambda maximum: seen)
    with pytest.raises(CommandError, match="still held") as caught:
        run("x", "--no-input")
    assert caught.value.returncode == 3
    second.renew()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d12h", 129600)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5h", "1h30", "h", "1 h", "٣", "1" * 40 + "x"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(CommandError, match="older-than"):
        run(f"--older-than={text}", "--no-input")
