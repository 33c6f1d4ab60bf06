"""Runs the demo: ``python -m example_project.demo [--once]``."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

from example_project.demo.console import Console
from example_project.demo.findings import UnexpectedError
from example_project.demo.services import Services
from example_project.demo.tour import stay, tour
from example_project.processes import ProcessError

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Ctrl-C, or another request to end; the argument is the signal's number."""


def stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


def on_stops(handler: signal.Handlers | object) -> None:
    for each in STOPS:
        signal.signal(each, handler)


def run(console: Console, folder: Path, *, once: bool) -> int:
    """Start everything, show it, and stop it all again; return the exit code."""
    with Services(folder) as services:
        try:
            on_stops(stop)
            succeeded = tour(console, services)
            if succeeded and not once:
                try:
                    stay(console, services)
                except Stopped:  # that is how it is meant to end
                    console.line()
            return 0 if succeeded else 1
        finally:
            # A second Ctrl-C must not interrupt the stopping of what was started.
            on_stops(signal.SIG_IGN)


def main() -> int:
    parser = argparse.ArgumentParser(prog="example_project.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="check the scenario and exit")
    options = parser.parse_args()
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="latch-demo-"))
    # A shell lets what it starts in the background ignore it, and it is what stops the worker.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    code = 1
    try:
        code = run(console, folder, once=options.once)
    except Stopped as stopped:
        code = 128 + stopped.args[0]
        console.line()
    except (ProcessError, UnexpectedError) as error:
        console.problem(str(error))
    finally:
        if code == 1:
            console.line(f"The logs are kept in {folder}")
        else:
            shutil.rmtree(folder)
    console.line("Everything that was started has been stopped.")
    return code


if __name__ == "__main__":
    sys.exit(main())
