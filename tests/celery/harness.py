"""Real workers for the tests, and what their tasks tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from uuid import uuid4

import redis
from celery.result import AsyncResult

from tests import servers

#: Databases of the test run's server; the locks have number 0, which each test empties.
BROKER, RESULTS, MARKS = 5, 6, 7

#: A broker of their own for tests of redelivery: kombu redelivers what any worker of a broker has
#: not acknowledged.
OWN_BROKER = 8

#: Environment variable: seconds after which that broker delivers a message again.
VISIBILITY = "LATCH_TEST_VISIBILITY"

#: Seconds after which something that should have happened counts as not happening.
PATIENCE = 20.0
ROOT = Path(__file__).parents[2]


class Worker:
    """A worker in a process of its own, consuming one queue.

    Parameters:
        queue: its queue; several workers may share one.
        concurrency: number of child processes.
        pool: Celery's name of the pool.
        visibility: use `OWN_BROKER`, and this visibility time-out in seconds.
        app: the app to serve.
        env: more environment variables.
    """

    def __init__(
        self,
        queue: str,
        *,
        concurrency: int = 4,
        pool: str = "prefork",
        visibility: int | None = None,
        app: str = "tests.celery.app",
        env: dict[str, str] | None = None,
    ) -> None:
        self.queue = queue
        self.name = f"{queue}-{uuid4().hex[:6]}@tests"
        self.output: list[str] = []
        self._lines: Queue[str] = Queue()
        extra = {VISIBILITY: str(visibility)} if visibility else {}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "-A", app, "worker"),
                *("--pool", pool, "--concurrency", str(concurrency), "--queues", queue),
                *("--hostname", self.name, "--loglevel", "INFO"),
                *("--without-gossip", "--without-mingle"),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **extra, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.output.append(line)
                self._lines.put(line)

    def wait_for(self, text: str, patience: float = PATIENCE) -> str:
        """The next line of output with `text` in it."""
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0))
            except Empty:
                raise AssertionError(f"no {text!r} in:\n{''.join(self.output)}") from None
            if text in line:
                return line

    def forget(self) -> None:
        """Let `wait_for` look at lines from now on only."""
        while not self._lines.empty():
            self._lines.get()

    def kill(self) -> None:
        """Kill the worker's main process; its children die with it."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), "a child of the worker outlived it"


@contextmanager
def worker(queue: str | None = None, **options: Any) -> Iterator[Worker]:
    """A worker that is ready; on a queue of its own unless told otherwise."""
    started = Worker(queue or f"q{uuid4().hex[:8]}", **options)
    try:
        started.wait_for("ready.")
        yield started
    finally:
        started.kill()


def kill(pid: int) -> None:
    """Kill a child process of a worker, as the kernel does when memory runs out."""
    os.kill(pid, signal.SIGKILL)


class Label:
    """What the tasks of one test tell, and the gate that lets them go on.

    The label is part of every task's arguments and locks, so tests that share workers never meet.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._redis = redis.Redis.from_url(
            servers.url(MARKS), decode_responses=True, socket_timeout=PATIENCE + 5
        )

    def __str__(self) -> str:
        return self.name

    def next(self, what: str, patience: float = PATIENCE, *, of: str = "") -> dict[str, Any]:
        """Wait for the next mark, which must be `what`."""
        found = self._redis.blpop([f"marks:{self.name}{of}"], timeout=patience)
        assert found is not None, f"no {what!r} within {patience:g} s"
        event: dict[str, Any] = json.loads(found[1])
        assert event["what"] == what, event
        return event

    def open(self, times: int = 1) -> None:
        """Let one waiting task go on, or several."""
        self._redis.rpush(f"gate:{self.name}", *["go"] * times)

    def nothing_left(self) -> None:
        """No task has told anything more than was asked for."""
        assert self._redis.lrange(f"marks:{self.name}", 0, -1) == []

    def close(self) -> None:
        """Let go whatever a failed test left waiting."""
        self.open(10)
        self._redis.close()


def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Ask again and again, for what sends no event; the first true answer."""
    deadline = time.monotonic() + patience
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {patience:g} s"
        time.sleep(0.01)
    return answer


def result(of: AsyncResult, patience: float = PATIENCE) -> Any:
    """The result of a call, or its exception raised."""
    until(of.ready, patience)
    return of.get()
