"""The commands as a shell runs them: exit codes, streams, a real terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_latch import inventory
from tests import servers
from tests.commands.conftest import Manage, environment
from tests.holding import Hold


def test_exit_0_and_json_on_stdout_alone(manage: Manage, hold: Hold) -> None:
    hold("a")
    done = manage("latch_list", "--format=json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["name"] == "a"
    done = manage("latch_clear", "--all", "--no-input", "--format=json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["outcome"] == "freed"
    assert inventory.count() == 0


def test_exit_0_when_nothing_is_stale(manage: Manage) -> None:
    done = manage("latch_clear")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Nothing is stale.\n")
    done = manage("latch_clear", "--verbosity=0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_exit_1_without_a_terminal(manage: Manage, hold: Hold) -> None:
    hold("a")
    done = manage("latch_clear", "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--no-input" in done.stderr
    assert inventory.count() == 1


@pytest.mark.parametrize(
    "args",
    [
        ("latch_clear", "--older-than=soon"),
        ("latch_clear", "--nonsense"),
        ("latch_clear", "--stale", "--all"),
        ("latch_list", "--format=xml"),
        ("latch_list", "--limit=0"),
    ],
)
def test_exit_2_for_wrong_usage(manage: Manage, args: tuple[str, ...]) -> None:
    assert manage(*args).returncode == 2


def test_exit_3_when_nothing_matched(manage: Manage) -> None:
    done = manage("latch_clear", "gone*", "--no-input", "--format=json")
    assert (done.returncode, json.loads(done.stdout)) == (3, [])
    assert "No lock matches" in done.stderr


@pytest.mark.parametrize("command", ["latch_list", "latch_clear"])
def test_exit_4_when_redis_is_away(manage: Manage, command: str) -> None:
    began = time.monotonic()
    done = manage(command, **{servers.URL: "redis://user:hunter2@127.0.0.1:1"})
    assert time.monotonic() - began < 5 + 2
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("CommandError: the lock store gave no usable answer (Connection")
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["latch_list", "latch_clear"])
def test_exit_4_when_the_password_is_wrong(manage: Manage, valkey: Any, command: str) -> None:
    url = valkey.url.replace("redis://", "redis://user:hunter2@")
    done = manage(command, **{servers.URL: url})
    assert (done.returncode, done.stdout) == (4, "")
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["latch_list", "latch_clear"])
def test_exit_4_when_the_store_is_none(manage: Manage, command: str) -> None:
    done = manage(command, DJANGO_SETTINGS_MODULE="tests.commands.locmem_settings")
    assert (done.returncode, done.stdout) == (4, "")
    assert "django-redis" in done.stderr


def test_a_killed_process_is_cleared_up_after(manage: Manage, dead: Callable[[str], int]) -> None:
    dead("left behind")
    done = manage("latch_clear")
    assert done.returncode == 0
    assert "left behind" in done.stdout
    assert inventory.count() == 0


def test_an_output_that_knows_only_ascii(manage: Manage, hold: Hold) -> None:
    hold("名前 🔒")
    done = manage("latch_list", PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0, done.stderr
    assert "\\u540d" in done.stdout


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 1), ("y", 1), ("", 1)])
@pytest.mark.parametrize("format_", ["table", "json"])
def test_asks_on_a_terminal(hold: Hold, answer: str, code: int, format_: str) -> None:
    hold("a", label="\x1b[31mred")
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "django", "latch_clear", "a", f"--format={format_}"],
            env=environment(),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(ours, f"{answer}\n".encode())
        out, err = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == code, err
    assert "Type 'yes'" in err
    assert "\x1b" not in err + out
    assert inventory.count() == (0 if code == 0 else 1)
    if code:
        assert out == ""
    elif format_ == "json":
        assert json.loads(out)[0]["outcome"] == "freed"
