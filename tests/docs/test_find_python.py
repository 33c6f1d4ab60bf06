"""`scripts/find-python` believes no name on PATH, and says what to do when nothing fits."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

VERSION = "{}.{}".format(*sys.version_info)


class Machine:
    """A machine with only the programs that are put on it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("sh", "cat", "tr"):
            (self.bin / tool).symlink_to(f"/bin/{tool}")

    def add(self, name: str, script: str) -> Path:
        """Put a shell script on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def find(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script with nothing else in the environment."""
        return subprocess.run(
            ["/bin/sh", ROOT / "scripts/find-python", *arguments],
            env={"PATH": str(self.bin), "HOME": str(self.bin.parent), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


WORKS = f'exec {shlex.quote(sys.executable)} "$@"'
LAUNCHER_OF_NOTHING = 'echo "python3.13: command not found" >&2; exit 127'
WITHOUT_ENSUREPIP = f'case "$*" in *ensurepip*) exit 1;; esac; {WORKS}'
TOO_OLD = 'case "$*" in *"%d.%d"*) echo 3.9;; *) exit 1;; esac'


def test_passes_over_launchers_that_fail(machine: Machine) -> None:
    machine.add("python3.13", LAUNCHER_OF_NOTHING)
    python = machine.add("python3", WORKS)
    found = machine.find()
    assert (found.returncode, found.stdout) == (0, f"{python}\n")


def test_looks_behind_the_first_of_path(machine: Machine, tmp_path: Path) -> None:
    machine.add("python3", LAUNCHER_OF_NOTHING)
    second = tmp_path / "second"
    second.mkdir()
    (second / "python3").symlink_to(machine.add("works", WORKS))
    found = machine.find(PATH=f"{machine.bin}:{second}")
    assert found.stdout == f"{second}/python3\n"


def test_python_of_the_caller_comes_first(machine: Machine) -> None:
    machine.add("python3", WORKS)
    mine = machine.add("mine", WORKS)
    assert machine.find(PYTHON="mine").stdout == f"{mine}\n"
    assert machine.find(PYTHON=str(mine)).stdout == f"{mine}\n"


def test_python_of_the_caller_is_not_replaced_in_silence(machine: Machine) -> None:
    machine.add("python3", WORKS)
    found = machine.find(PYTHON="nowhere")
    assert (found.returncode, found.stdout) == (1, "")
    assert "PYTHON=nowhere does not run" in found.stderr


def test_finds_a_version_of_pyenv(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / f".pyenv/versions/{VERSION}.0/bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(machine.add("works", WORKS))
    assert machine.find(VERSION).stdout == f"{folder}/python\n"


def test_names_the_remedy_where_venv_is_missing(machine: Machine) -> None:
    machine.add("python3", WITHOUT_ENSUREPIP)
    found = machine.find()
    assert (found.returncode, found.stdout) == (1, "")
    assert "apt-get install python3-venv" in found.stderr


def test_names_the_remedy_where_python_is_too_old(machine: Machine) -> None:
    python = machine.add("python3", TOO_OLD)
    found = machine.find()
    assert (found.returncode, found.stdout) == (1, "")
    assert "No Python 3.11 or newer was found" in found.stderr
    assert f"{python} is Python 3.9" in found.stderr
    assert "apt-get install python3 python3-venv" in found.stderr


def test_asks_for_exactly_the_version_of_a_row(machine: Machine) -> None:
    machine.add("python3", WORKS)
    found = machine.find("3.99")
    assert found.returncode == 1
    assert "No Python 3.99 was found" in found.stderr
