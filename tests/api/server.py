"""Real server processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from tests.api.settings import CHANGES, DATABASE

Kind = Literal["uvicorn", "gunicorn"]


class Server:
    """A server process. Its socket listens before it runs, so nobody has to wait for it."""

    def __init__(self, folder: Path, kind: Kind, changes: dict[str, Any]) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.log = folder / f"{listener.getsockname()[1]}.log"
        number = str(listener.fileno())
        command = {
            "uvicorn": ["--fd", number, "--lifespan", "off", "tests.api.asgi:application"],
            "gunicorn": ["--bind", f"fd://{number}", "tests.api.wsgi:application"],
        }[kind]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", kind, *command],
                env=environment(folder, changes),
                pass_fds=[listener.fileno()],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        listener.close()  # the server's own copy is left: if it dies, clients are told

    def stop(self) -> None:
        """End it as an operator would."""
        self.process.terminate()
        self.process.wait(20)

    def kill(self) -> None:
        """End it as a crash would; connections break."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)


def environment(folder: Path, changes: dict[str, Any] | None = None) -> dict[str, str]:
    """What a server, or `manage.py` beside it, needs to find the database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.api.settings",
        "PYTHONUNBUFFERED": "1",
        DATABASE: str(folder / "db.sqlite3"),
        CHANGES: json.dumps(changes or {}),
    }


def manage(folder: Path, *args: str) -> str:
    """The output of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "django", *args],
        env=environment(folder),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


@contextmanager
def serving(folder: Path, kind: Kind = "uvicorn", **changes: Any) -> Iterator[Server]:
    """A server of one's own; `changes` to DJANGO_LATCH."""
    server = Server(folder, kind, changes)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
