"""A schedule that is faster than its job: one run at a time, and nobody complains."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.celery.harness import ROOT, until
from tests.exits.cell import Bound, Cell, exits
from tests.exits.columns import options
from tests.exits.scheduled import DATABASE

TICKS = 20
#: Seconds between two ticks.
EVERY = 0.25

#: Writes the schedule of django-celery-beat: task, queue and label are its arguments.
SCHEDULE = f"""
import json, sys
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django_celery_beat.models import IntervalSchedule, PeriodicTask
task, queue, label = sys.argv[1:]
every = IntervalSchedule.objects.create(every={int(EVERY * 1e6)}, period="microseconds")
PeriodicTask.objects.create(
    name="slow", task=task, queue=queue, args=json.dumps([label]), interval=every
)
"""


@contextmanager
def beat(path: Path, env: dict[str, str], *args: str) -> Iterator[Path]:
    """A beat process; the file that it logs to."""
    log = path / "beat.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "tests.exits.app",
                "beat",
                "--loglevel",
                "INFO",
                *args,
            ],
            cwd=ROOT,
            env={**os.environ, **env},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(20)


def watch(cell: Cell, log: Path) -> None:
    """See the job run four times while it is called 20 times."""
    for run in range(1, 5):
        cell.started()
        until(lambda: _ticks(log) >= run * TICKS // 4)  # noqa: B023
        cell.go()
        ended = cell.ended()
    again = cell.started()
    cell.judge(float(again["at"]) - ended, Bound("next tick", 0, 2 * EVERY + 2))
    for line in [*cell.worker.output, *log.read_text(encoding="utf-8").splitlines()]:
        assert "ERROR" not in line
        assert "Traceback" not in line


def _ticks(log: Path) -> int:
    """How often the job was due so far."""
    return log.read_text(encoding="utf-8").count("Sending due task slow")


@exits("a beat faster than its job: 20 ticks", "prefork", at=("run", "both"))
def test_beat(cell: Cell, tmp_path: Path) -> None:
    with cell.own_worker() as worker:
        cell.use(worker)
        entry = {
            "task": cell.task().name,
            "schedule": EVERY,
            "args": [str(cell.label)],
            "options": {"queue": worker.queue},
        }
        env = options(cell.spec.column, {"beat_schedule": {"slow": entry}})["env"]
        with beat(tmp_path, env, "--schedule", str(tmp_path / "schedule")) as log:
            watch(cell, log)


@pytest.mark.skipif(
    find_spec("django_celery_beat") is None, reason="django-celery-beat is not installed"
)
@exits(
    "django-celery-beat faster than its job: 20 ticks", "prefork", at=("run", "both"), only="redis"
)
def test_django_celery_beat(cell: Cell, tmp_path: Path) -> None:
    with cell.own_worker() as worker:
        cell.use(worker)
        env = {
            **options(cell.spec.column)["env"],
            DATABASE: str(tmp_path / "db.sqlite3"),
            "DJANGO_SETTINGS_MODULE": "tests.exits.scheduled",
        }
        arguments = (cell.task().name, worker.queue, str(cell.label))
        subprocess.run(
            [sys.executable, "-c", SCHEDULE, *arguments],
            cwd=ROOT,
            env={**os.environ, **env},
            check=True,
            timeout=60,
        )
        scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
        with beat(tmp_path, env, "--scheduler", scheduler) as log:
            watch(cell, log)
