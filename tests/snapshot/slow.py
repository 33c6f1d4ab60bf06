"""A TCP proxy that delivers everything late, as a distant or busy server does."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests import servers


class Slow:
    """Sits before the run's server. `delay`, in seconds, is put before every reply."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        server = urlsplit(servers.url())
        self._server = (server.hostname, server.port)
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{server.path}"
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                for target, args in (
                    (self._pass, (client, server)),
                    (self._read, (server, late)),
                    (self._write, (client, late)),
                ):
                    threading.Thread(target=target, args=args, daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _read(self, server: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                late.put((time.monotonic() + self.delay, data))
        late.put((0, b""))

    def _write(self, client: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while True:
                due, data = late.get()
                if not data:
                    break
                time.sleep(max(due - time.monotonic(), 0))
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no connection any more, and break those there are."""
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def slow(delay: float) -> Iterator[Slow]:
    """A slow way to the run's server."""
    made = Slow(delay)
    try:
        yield made
    finally:
        made.close()
