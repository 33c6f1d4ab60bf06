"""Programs of the example project, each marked so that whatever it leaves behind is found."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = "LATCH_TEST_PROGRAM"
PATIENCE = 180


class Program:
    """A Python program of the example project, with its output line by line."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.mark = secrets.token_hex(8)
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **environment, MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # Ends the reading of output, too, should the program hang.
        self._timer = threading.Timer(PATIENCE, self._process.kill)
        self._timer.start()

    def read_until(self, pattern: str) -> re.Match[str]:
        """Read output up to a line in which `pattern` is found."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            if found := re.search(pattern, line):
                return found
        pytest.fail(f"{pattern!r} was not printed:\n{self.output}")

    def finish(self) -> int:
        """Read the rest of the output; return the exit code."""
        assert self._process.stdout is not None
        self.lines += [line.rstrip("\n") for line in self._process.stdout]
        return self._process.wait()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def processes(self) -> list[str]:
        """What runs of this program and of all that it has started, as command lines."""
        return marked(self.mark)

    def close(self) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def marked(mark: str) -> list[str]:
    """The living processes whose environment holds the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


@pytest.fixture
def program() -> Iterator[type[Program]]:
    """Starts a program: ``program("-m", "example_project.demo", NAME="value")``."""
    started: list[Program] = []

    class Kept(Program):
        def __init__(self, *arguments: str, **environment: str) -> None:
            super().__init__(*arguments, **environment)
            started.append(self)

    yield Kept
    for each in started:
        each.close()


class Browser:
    """Fetches pages, keeps cookies, sends forms with the token that the last page held."""

    def __init__(self) -> None:
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        self._token = ""

    def get(self, url: str, fields: dict[str, str] | None = None) -> str:
        """The page at `url`, after redirects; with `fields`, sent as a form."""
        body = None
        if fields is not None:
            body = urlencode({**fields, "csrfmiddlewaretoken": self._token}).encode()
        with self._opener.open(url, body, timeout=30) as response:
            self.url = response.url
            page: str = response.read().decode()
        if found := re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page):
            self._token = found[1]
        return page

    def login(self, url: str, user: str, password: str) -> str:
        """The page at `url`, which asks for a login first."""
        assert 'name="password"' in self.get(url)
        return self.get(self.url, {"username": user, "password": password})


@pytest.fixture
def browse() -> Browser:
    return Browser()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Looks until something is true, for at most 10 s."""

    def look(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it did not become true"
            time.sleep(0.02)

    return look
