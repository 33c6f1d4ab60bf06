"""The demo, as its user sees it: what it prints, how it ends, and that nothing of it stays."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from example_project.demo.console import Console

DEMO = ("-m", "example_project.demo")


def test_once_checks_the_scenario_and_leaves_no_process(program, tmp_path):
    # What its user has set for other work must not reach it.
    foreign = {
        "DJANGO_SETTINGS_MODULE": "somebody.elses.settings",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "DATABASE_URL": "postgres://127.0.0.1:1/production",
        "CELERY_BROKER_URL": "amqp://127.0.0.1:1//",
        "TMPDIR": str(tmp_path),
    }
    demo = program(*DEMO, "--once", **foreign)

    assert demo.finish() == 0, demo.output
    assert "20 sent, 1 ran, 19 skipped" in demo.lines
    facts = {
        label: text
        for label, _, text in (line.strip().partition("  ") for line in demo.lines)
        if text
    }
    by = "busy: held by invoicing.import_statement on demo@"
    assert facts["19 skipped"].strip().startswith(by)
    assert facts["second key"].strip() == "ran beside the first"
    assert int(facts["renewals seen"].split(";")[0]) >= 3
    runs = re.findall(r"(\d+) for (\S+?)[, ]", facts["most runs at once"] + " ")
    assert runs == [("1", "import:1"), ("1", "import:2"), ("1", "import:3")]
    freed = re.search(r"after ([\d.]+) s \(TTL 6 s\)", facts["killed child"])
    assert freed is not None
    assert 0 < float(freed[1]) < 6 + 2
    assert facts["import:3"].strip() == "acquired -> expired -> acquired -> released"
    assert "\033" not in demo.output
    assert "Traceback" not in demo.output
    assert demo.processes() == []
    assert list(tmp_path.iterdir()) == []


def test_it_stays_until_ctrl_c_which_stops_everything(program, tmp_path, browse):
    demo = program(*DEMO, TMPDIR=str(tmp_path))
    locks = demo.read_until(r"locked jobs +(http\S+)")[1]
    user, password = demo.read_until(r"login +(\S+) +password (\S+)").groups()
    demo.read_until("Ctrl-C stops everything")

    page = browse.login(locks, user, password)
    assert "import:1" in page
    assert "import:2" in page
    started = demo.processes()
    # The worker and its four children; the one that was killed may not be replaced yet.
    assert len([command for command in started if "celery" in command]) in (4, 5)

    demo.signal(signal.SIGINT)
    assert demo.finish() == 0, demo.output
    assert demo.processes() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "number", "code"),
    [
        ("Getting ready", signal.SIGINT, 130),
        ("  worker", signal.SIGTERM, 143),
        ("^3. ", signal.SIGTERM, 143),
        ("^3. ", signal.SIGHUP, 129),
    ],
)
def test_a_signal_in_the_middle_stops_everything(program, tmp_path, moment, number, code):
    demo = program(*DEMO, "--once", TMPDIR=str(tmp_path))
    demo.read_until(moment)

    demo.signal(number)
    demo.signal(number)  # an impatient user: the second must not interrupt the stopping

    assert demo.finish() == code, demo.output
    assert "Traceback" not in demo.output
    assert demo.processes() == []
    assert list(tmp_path.iterdir()) == []


def test_in_the_background_it_stops_everything_too(program, tmp_path):
    """There a shell lets SIGQUIT be ignored, by which a worker is told to stop."""
    usual = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        demo = program(*DEMO, "--once", TMPDIR=str(tmp_path))
    finally:
        signal.signal(signal.SIGQUIT, usual)
    demo.read_until("  worker")

    demo.signal(signal.SIGTERM)

    assert demo.finish() == 143, demo.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_nothing_outlives_a_killed_demo(program, tmp_path, eventually):
    demo = program(*DEMO, "--once", TMPDIR=str(tmp_path))
    demo.read_until("^3. ")
    assert len(demo.processes()) >= 8  # itself, Valkey, the web server, a worker, its four children

    demo.signal(signal.SIGKILL)

    assert demo.finish() == -signal.SIGKILL
    eventually(lambda: demo.processes() == [])


def test_a_failure_is_told_in_a_line_with_the_logs(program, tmp_path):
    # No Celery worker can start: the demo must say so, not hang.
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'worker' in sys.orig_argv:\n"
        "    os.write(2, b'no worker today')\n"
        "    os._exit(1)\n"
    )
    path = os.pathsep.join([str(tmp_path / "broken"), os.environ.get("PYTHONPATH", "")])
    demo = program(*DEMO, "--once", TMPDIR=str(tmp_path), PYTHONPATH=path)

    assert demo.finish() == 1
    assert "worker has ended" in demo.output
    assert "no worker today" in demo.output
    assert "Traceback" not in demo.output
    folder = re.search(r"logs are kept in (\S+)", demo.output)
    assert folder is not None
    assert (Path(folder[1]) / "worker.log").exists()
    assert demo.processes() == []


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colours_only_where_they_are_wanted(monkeypatch, capsys, terminal, environment, coloured):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    console = Console()
    console.heading("heading")
    console.proof("proof")
    console.problem("problem")
    assert ("\033[" in capsys.readouterr().out) is coloured
