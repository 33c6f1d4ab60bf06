"""Starts and stops helper processes so that none is ever left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

LAUNCHER = Path(__file__).with_name("launch.py")
POLL = 0.02


class ProcessError(RuntimeError):
    """A helper process did not start, or ended too soon; the message holds the end of its log."""


class Process:
    """A helper process with its own process group and a log file.

    On Linux the kernel kills it when the thread that started it ends, so start it from a thread
    that lives as long as it is needed. Its own children must end with it, as Celery's do.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.stop_signal = stop_signal
        self.command = [sys.executable, "-I", str(LAUNCHER), str(os.getpid()), *command]
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Self:
        """Start it; `env` replaces the whole environment."""
        with self.log.open("ab") as log, held_back(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                # A group of its own: Ctrl-C in the terminal reaches the program that started it,
                # which then stops its helpers in order.
                start_new_session=True,
            )
        return self

    @property
    def pid(self) -> int:
        """Its process id, also of its process group."""
        if self._process is None:
            raise ProcessError(f"{self.name} was not started")
        return self._process.pid

    def running(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait until it has ended by itself; return its exit code."""
        if self._process is None:
            raise ProcessError(f"{self.name} was not started")
        return self._process.wait()

    def check(self) -> None:
        """Raise ProcessError, with the end of the log, if it does not run any more."""
        if not self.running():
            lines = self.log.read_text(errors="replace").splitlines()[-15:]
            raise ProcessError("\n  ".join([f"{self.name} has ended; its last words:", *lines]))

    def stop(self, grace: float = 5.0) -> None:
        """Ask it to end, kill what is left of its group after `grace` seconds, and wait for that.

        Raises:
            ProcessError: something of it outlives SIGKILL.
        """
        if self._process is None:
            return
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        group, deadline = self._process.pid, time.monotonic() + 5
        while left := members(group):
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name}: processes {left} do not end")
            for pid in left:
                kill(pid)
            time.sleep(POLL)
        self._process = None


@contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """Let signals wait: their handlers shall find no process, or one that can be stopped."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def kill(pid: int) -> None:
    """SIGKILL a process that may have ended by itself meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def members(group: int) -> list[int]:
    """The living processes of a process group, by /proc (none where that does not exist)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The command name, in parentheses, may itself hold spaces and parentheses.
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if int(pgrp) == group and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
