"""The example project where its environment variables lead: PostgreSQL and RabbitMQ."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kombu import Connection

from example_project.demo.services import Services
from example_project.demo.surroundings import ROOT
from tests.databases import rows
from tests.exits.columns import RABBITMQ
from tests.services import missing
from tests.sql import URL

pytestmark = pytest.mark.databases

#: Sends calls of the jobs and prints what came of them.
JOBS = ROOT / "tests" / "example" / "jobs.py"

#: The queue of the example's jobs.
QUEUE = "celery"


@pytest.fixture
def broker() -> Iterator[str]:
    """RabbitMQ, without jobs of others."""
    at = urlsplit(RABBITMQ)
    try:
        socket.create_connection((at.hostname, at.port), timeout=2).close()
    except OSError as error:
        missing(f"RabbitMQ does not answer: {error}; LATCH_TEST_AMQP_URL may say where it is")
    with Connection(RABBITMQ) as connection:
        connection.default_channel.queue_delete(QUEUE)
        yield RABBITMQ
        connection.default_channel.queue_delete(QUEUE)


def test_its_jobs_do_the_same_there(broker: str, tmp_path: Path) -> None:
    postgresql = rows.SERVERS[0]
    if not os.environ[URL].startswith(postgresql.url):
        pytest.skip("once is enough, on PostgreSQL")
    with rows.database(postgresql) as url, Services(tmp_path) as services:
        with rows.connect(postgresql.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {url.rpartition('/')[2]}")
        services.start_valkey()
        services.env |= {"DATABASE_URL": url, "CELERY_BROKER_URL": broker}

        def run(*command: str) -> str:
            done = subprocess.run(
                [sys.executable, *command],
                env=services.env,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        run("-m", "django", "migrate", "-v", "0")
        run("-m", "django", "add_sample_data")
        services.start_worker()
        outcome = json.loads(run(str(JOBS)))
    assert outcome["nightly"]["skipped"] == ["import:1", "busy", "invoicing.import_statement"]
    assert outcome["nightly"]["payments"] == 3
    assert "is older than the account's" in outcome["late"]
    assert outcome["render"]["begin"] == "%PDF-"
