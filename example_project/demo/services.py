"""What the demo starts: Valkey, a worker, a web server; and how it stops them."""

from __future__ import annotations

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from example_project.demo.surroundings import ROOT, surroundings
from example_project.processes import POLL, Process, ProcessError, free_port
from example_project.valkey import ATTEMPTS, EmbeddedValkey

CONCURRENCY = 4
START_TIMEOUT = 60.0


class Services:
    """The demo's processes, each in `folder`: use as a context manager, then start them in turn.

    Leaving it stops all, also the half-started, and raises ProcessError if any of them survives.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.valkey = EmbeddedValkey(folder / "valkey")
        self.env: dict[str, str] = {}
        self.web_url = ""
        self._processes: list[Process] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def start_valkey(self) -> EmbeddedValkey:
        """Start Valkey; from now on `env` is the environment of all other processes."""
        self._stack.callback(self.valkey.stop)
        self.valkey.start()
        self.env = surroundings(os.environ, self.folder, self.valkey.url)
        return self.valkey

    def start_worker(self) -> Process:
        """Start a Celery worker of CONCURRENCY child processes."""
        options = ["--pool", "prefork", "--concurrency", str(CONCURRENCY), "--hostname", "demo@%h"]
        quiet = ["--loglevel", "INFO", "--without-gossip", "--without-mingle"]
        command = ["celery", "-A", "example_project", "worker", *options, *quiet]
        # A cold shutdown: the jobs of a demo need not be finished.
        self.worker = self._start("worker", command, signal.SIGQUIT)
        return self.worker

    def start_web(self) -> str:
        """Start the web server on a free port, wait until it answers, and return its address."""
        for attempt in range(1, ATTEMPTS + 1):
            port = free_port()
            url = f"http://127.0.0.1:{port}/"
            web = self._start("web", ["django", "runserver", "--noreload", f"127.0.0.1:{port}"])
            try:
                self._wait_for(web, url + "admin/login/")
            except ProcessError:  # another program may have taken the port in between
                if attempt == ATTEMPTS:
                    raise
                self._processes.remove(web)
            else:
                self.web_url = url
                break
        return self.web_url

    def check(self) -> None:
        """Raise ProcessError if one of them has ended."""
        self.valkey.check()
        for process in self._processes:
            process.check()

    def owns(self, pid: int) -> bool:
        """Whether `pid` is a process of the worker: nothing else may be killed."""
        return pid != self.worker.pid and os.getpgid(pid) == self.worker.pid

    def _start(
        self, name: str, module: Sequence[str], stop_signal: signal.Signals = signal.SIGTERM
    ) -> Process:
        command, log = [sys.executable, "-m", *module], self.folder / f"{name}.log"
        process = Process(name, command, log, stop_signal)
        self._stack.callback(process.stop)
        self._processes.append(process)
        return process.start(env=self.env, cwd=ROOT)

    def _wait_for(self, process: Process, url: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        # No proxy: the address is this machine's own.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while time.monotonic() < deadline:
            process.check()
            try:
                with opener.open(url, timeout=10):
                    return
            except urllib.error.HTTPError as error:
                raise ProcessError(f"{url} answers {error.code}; see {process.log}") from error
            except OSError:
                time.sleep(POLL)
        raise ProcessError(f"{process.name} does not answer within {START_TIMEOUT:g} s")
