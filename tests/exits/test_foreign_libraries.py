"""Locks made by celery-once and celery-singleton themselves are found and cleared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from io import StringIO
from typing import Any

import pytest
import redis
from django.core.management import call_command

from tests import servers

DATABASE = 10

#: Sends a job by each library; in a process of its own, for both warn of their own code.
SEND = """
import sys
from celery import Celery
from celery_once import QueueOnce
from celery_singleton import Singleton

url = sys.argv[1]
app = Celery("sender", broker=url, backend=url)
app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": {"url": url}}

@app.task(base=QueueOnce, name="shop.once")
def once(a, b=2): pass

@app.task(base=Singleton, name="shop.single")
def single(a, b=2): pass

@app.task(base=Singleton, name="shop.timed", unique_on=["a"], lock_expiry=60)
def timed(a, b=2): pass

once.delay(1, b=[3, "x y"])
print(single.delay(1).id)
print(timed.delay(1).id)
"""


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """The ids of jobs whose locks celery-singleton has."""
    if missing := [name for name in ("celery_once", "celery_singleton") if find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    url = servers.url(DATABASE)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEND, url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    yield done.stdout.split()
    with redis.Redis.from_url(url) as client:
        client.flushdb()


def run(command: str, *args: str) -> list[dict[str, Any]]:
    out = StringIO()
    url = servers.url(DATABASE)
    call_command(command, "--foreign", f"--url={url}", *args, format="json", stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def test_their_locks(sent: list[str]) -> None:
    listed = run("latch_list")
    assert [record["library"] for record in listed if record["task_id"] is None] == ["celery-once"]
    assert sorted(record["task_id"] for record in listed if record["task_id"]) == sorted(sent)
    assert [record["outcome"] for record in run("latch_clear", "--no-input")] == ["deleted"] * 3
    with redis.Redis.from_url(servers.url(DATABASE)) as client:
        assert client.exists("celery")  # the queue with their messages
    assert run("latch_list") == []
