"""A TCP proxy that loses replies, or holds requests back and delivers them late."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from django_latch.store.scripts import script
from tests import servers

Fault = Literal["pass", "close", "swallow", "hold"]


class Proxy:
    """Sits before the run's server. Faults are armed for the next call of one script.

    ``pass``: nothing happens to this one, and the next fault waits for the call after it.
    ``close``: the server carries the call out, then the client's connection breaks.
    ``swallow``: the server carries it out, and its reply never arrives.
    ``hold``: the call does not reach the server before `deliver`; the connection breaks.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        server = urlsplit(servers.url())
        self.url = f"redis://127.0.0.1:{self.port}{server.path}"
        self._server = (server.hostname, server.port)
        self._select = f"SELECT {server.path.strip('/')}\r\n".encode()
        self._armed: list[tuple[bytes, Fault]] = []
        self._held: list[bytes] = []
        self._links: list[_Link] = []
        #: Every script call that came, for sending copies of it.
        self.passed: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, verb: str, fault: Fault, times: int = 1) -> None:
        """Let `fault` happen to the next calls of a script."""
        self._armed += [(script(verb).sha.encode(), fault)] * times

    def armed(self, verb: str) -> bool:
        """Whether a fault still waits for a call of this script."""
        return any(sha == script(verb).sha.encode() for sha, _ in self._armed)

    @property
    def spent(self) -> bool:
        """Whether every armed fault has happened."""
        return not self._armed

    def calls(self, verb: str) -> list[bytes]:
        """The calls of a script that were sent, the lost ones too."""
        return [data for data in self.passed if script(verb).sha.encode() in data]

    def deliver(self) -> list[bytes]:
        """Let the calls that were held back reach the server now; its replies."""
        held, self._held = self._held, []
        return [self.send(data) for data in held]

    def deliver_those_without_waiting(self) -> None:
        """The same, but for the calls that stand behind a BLPOP."""
        self._held = [data for data in self._held if b"BLPOP" not in data]
        self.deliver()

    def send(self, data: bytes) -> bytes:
        """Send bytes to the server on a connection of their own; its reply."""
        with socket.create_connection(self._server, timeout=5) as copy:
            copy.sendall(self._select)
            assert copy.recv(5) == b"+OK\r\n"
            copy.sendall(data)
            return copy.recv(65536)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                link = _Link(client, socket.create_connection(self._server))
                self._links.append(link)
                for pump in (self._requests, self._replies):
                    threading.Thread(target=pump, args=(link,), daemon=True).start()

    def _requests(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.client.recv(65536):
                if b"EVAL" in data:
                    self.passed.append(data)
                fault = self._fault_for(data)
                if fault == "hold":
                    self._held.append(data)
                    break
                link.fault = fault
                link.server.sendall(data)
        link.close()

    def _replies(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.server.recv(65536):
                if link.fault == "close":
                    break
                if link.fault in (None, "pass"):
                    link.client.sendall(data)
        link.close()

    def _fault_for(self, data: bytes) -> Fault | None:
        for entry in self._armed:
            if entry[0] in data:
                self._armed.remove(entry)
                return entry[1]
        return None

    def cut(self) -> None:
        """Break every connection there is."""
        links, self._links = self._links, []
        for link in links:
            link.close()

    def close(self) -> None:
        """Take no connection any more."""
        _close(self._listener)
        self.cut()


@dataclass
class _Link:
    """A client's connection and the one to the server behind it."""

    client: socket.socket
    server: socket.socket
    fault: Fault | None = None

    def close(self) -> None:
        _close(self.client)
        _close(self.server)


def _close(which: socket.socket) -> None:
    with suppress(OSError):
        which.shutdown(socket.SHUT_RDWR)
    which.close()


@contextmanager
def proxy() -> Iterator[Proxy]:
    """A proxy before the run's server."""
    made = Proxy()
    yield made
    made.close()
