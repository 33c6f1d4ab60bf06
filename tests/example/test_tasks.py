"""The example's tasks on a real worker: what becomes of a second call of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from example_project.demo.services import Services
from example_project.demo.surroundings import ROOT

JOBS = Path(__file__).with_name("jobs.py")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What jobs.py has seen."""
    with Services(tmp_path_factory.mktemp("jobs")) as services:
        services.start_valkey()

        def run(*command):
            command = [sys.executable, *command]
            done = subprocess.run(
                command, env=services.env, cwd=ROOT, capture_output=True, text=True, timeout=180
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        run("-m", "django", "migrate", "-v", "0")
        run("-m", "django", "add_sample_data")
        services.start_worker()
        yield json.loads(run(str(JOBS)))


def test_the_nightly_run_skips_the_import_that_runs(outcome):
    assert outcome["nightly"]["skipped"] == ["import:1", "busy", "invoicing.import_statement"]
    assert sorted(outcome["nightly"]["booked"][:3]) == [[1, 1], [2, 1], [3, 1]]


def test_a_payment_that_is_reported_twice_is_booked_once(outcome):
    assert outcome["nightly"]["booked"][3] == [1, 0]
    assert outcome["nightly"]["payments"] == 3
    assert outcome["nightly"]["paid"] == 3


def test_a_writer_with_an_old_fence_is_refused(outcome):
    assert "is older than the account's" in outcome["late"]


def test_a_pdf_that_could_not_be_made_at_once_is_made_later(outcome):
    assert outcome["render"]["early"] is False
    assert outcome["render"]["name"].endswith("-0001.pdf")
    assert outcome["render"]["begin"] == "%PDF-"
