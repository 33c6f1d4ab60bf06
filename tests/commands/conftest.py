from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.holding import Hold, holding

Manage = Callable[..., "subprocess.CompletedProcess[str]"]

#: Takes a lock and dies before it can release it.
DIE = """
import django, os, signal, sys
django.setup()
from django_latch import latch
lease = latch(sys.argv[1], ttl=600, timeout=0).acquire()
print(lease.fence, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Take a lock as if the process with these facts had done so."""
    with holding() as take:
        yield take


def environment(**changes: str) -> dict[str, str]:
    """A shell's environment, with this run's server."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **changes}


@pytest.fixture
def manage() -> Manage:
    """Run a command as from a shell without a terminal."""

    def run(*args: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "django", *args],
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def dead() -> Callable[[str], int]:
    """Leave a lock behind as a killed process does; returns its fence."""

    def take(name: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", DIE, name],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode < 0, done.stderr
        return int(done.stdout)

    return take
