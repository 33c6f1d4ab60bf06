"""A client that costs little: thousands of them wait in one test."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Asking:
    """A request under way; `close` is a client that goes away."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answer(self) -> tuple[int, dict[str, Any]]:
        """Status and body; a broken connection raises ConnectionError."""
        try:
            raw = await self.reader.read()
        finally:
            self.writer.close()
        head, _, body = raw.partition(b"\r\n\r\n")
        if not head:
            raise ConnectionResetError("no answer")
        return int(head.split()[1]), json.loads(body)

    def close(self) -> None:
        self.writer.transport.abort()


async def ask(url: str, account: str, path: str, **body: Any) -> Asking:
    """Send a POST; `account` is the API token."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/latch/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        f"Authorization: Bearer {account}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    await writer.drain()
    return Asking(reader, writer)


async def call(url: str, account: str, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    """Send a POST and wait for its answer."""
    return await (await ask(url, account, path, **body)).answer()
