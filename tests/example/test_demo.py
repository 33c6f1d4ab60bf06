"""The demo, as its user sees it: what it prints, how it ends, and that nothing of it stays."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

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
    assert facts["19 skipped"].strip().startswith("busy: held by invoicing.import_statement on demo@")
    assert facts["second key"].strip() == "ran beside the first"
    assert int(facts["renewals seen"].split(";")[0]) >= 3
    runs = re.findall(r"(\d+) for (\S+?)[, ]", facts["most runs at once"] + " ")
    assert runs == [("1", "import:1"), ("1", "import:2"), ("1", "import:3")]
    freed = re.search(r"after ([\d.]+) s \(TTL 6 s\)", facts["killed child"])
    assert freed is not None
    assert 0 < float(freed[1]) < 6 + 2
    assert facts["import:3"].strip() == "acquired -> expired -> acquired -> released"
    assert "\033" not in demo.output
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
    assert len([command for command in started if "celery" in command]) == 5

    demo.signal(signal.SIGINT)
    assert demo.finish() == 0, demo.output
    assert demo.processes() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_in_the_middle_stops_everything(program, tmp_path, number, code):
    demo = program(*DEMO, "--once", TMPDIR=str(tmp_path))
    demo.read_until("^3. ")

    demo.signal(number)
    demo.signal(number)  # an impatient user: the second must not interrupt the stopping

    assert demo.finish() == code, demo.output
    assert demo.processes() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_nothing_outlives_a_killed_demo(program, tmp_path, eventually):
    demo = program(*DEMO, "--once", TMPDIR=str(tmp_path))
    demo.read_until("^3. ")
    assert len(demo.processes()) >= 7  # itself, Valkey, the web server, the worker with four children

    demo.signal(signal.SIGKILL)

    assert demo.finish() == -signal.SIGKILL
    eventually(lambda: demo.processes() == [])


def test_a_failure_is_told_in_a_line_with_the_logs(program, tmp_path):
    # No Celery worker can start: the demo must say so, not hang.
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text(
        "import sys\nif 'worker' in sys.orig_argv: sys.exit('no worker today')\n"
    )
    demo = program(
        *DEMO, "--once", TMPDIR=str(tmp_path), PYTHONPATH=str(tmp_path / "broken"), NO_COLOR="1"
    )

    assert demo.finish() == 1
    assert "worker has ended" in demo.output
    assert "no worker today" in demo.output
    assert "Traceback" not in demo.output
    folder = re.search(r"logs are kept in (\S+)", demo.output)
    assert folder is not None
    assert (Path(folder[1]) / "worker.log").exists()
    assert demo.processes() == []
