"""Programs of their own process, which a test may pause, kill or let fork."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Where the tests were started in the background, a shell may have let SIGINT be ignored.
PREAMBLE = """
import django, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
django.setup()
from django_latch import *
def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().strip()
"""

#: Put before a program: whenever it acquires a lock, it forks a child that exits at once.
FORKS = """
from django_latch import signals

def fork(**facts):
    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)

signals.lock_acquired.connect(fork)
"""

#: Seconds until a program that says nothing is taken for stuck.
PATIENCE = 20.0


class Program:
    """A Python program that speaks line by line: `say(...)` there is `hear()` here."""

    def __init__(self, code: str, *, setup: str = PREAMBLE, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", setup + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
                **env,
            },
        )
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors += self._process.stderr

    def hear(self) -> str:
        """The next line it says."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"the program says nothing: {''.join(self.errors)}") from None
        if line is None:
            self._readers[1].join(PATIENCE)
            raise AssertionError(f"the program has ended: {''.join(self.errors)}")
        return line

    def expect(self, *words: object) -> None:
        """The next line it says is this."""
        heard = self.hear()
        assert heard == " ".join(map(str, words)), f"{heard!r}\n{''.join(self.errors)}"

    def say(self, *words: object) -> None:
        """Say a line to it."""
        assert self._process.stdin is not None
        print(*words, file=self._process.stdin, flush=True)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; it is gone afterwards."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def end(self) -> int:
        """Wait until it ends by itself; its exit code."""
        code = self._process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def close(self) -> None:
        """Let nothing of it survive the test."""
        if self._process.poll() is None:
            self.kill()
        for reader in self._readers:
            reader.join(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def program(code: str, **options: str) -> Iterator[Program]:
    """A program that is gone after the block."""
    made = Program(code, **options)
    try:
        yield made
    finally:
        made.close()
