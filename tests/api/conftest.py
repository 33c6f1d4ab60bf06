"""A server for the whole run, its tokens, and what speaks to it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.server import Server, manage, serving

Answer = httpx.Response


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers' database and logs are."""
    made = tmp_path_factory.mktemp("api")
    manage(made, "migrate", "--verbosity", "0")
    return made


@pytest.fixture(scope="session")
def token(folder: Path) -> str:
    """An API token with every right."""
    return manage(folder, "latch_token", "create", "tests", "--scope", "*", "--force")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    """One uvicorn process for all tests that do not harm it."""
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="session")
def gunicorn(folder: Path) -> Iterator[Server]:
    """One gunicorn process with a sync worker."""
    with serving(folder, "gunicorn") as running:
        yield running


@dataclass
class Api:
    """A client that says what it sends."""

    http: httpx.Client

    def acquire(self, key: str, **body: Any) -> Answer:
        return self.http.post(f"/v1/latch/{key}", json={"ttl": 5, "timeout": 0, **body})

    def take(self, key: str, **body: Any) -> dict[str, Any]:
        """Acquire, or fail."""
        answer = self.acquire(key, **body)
        assert answer.status_code == 200, answer.text
        taken: dict[str, Any] = answer.json()
        return taken

    def release(self, key: str, token: str) -> Answer:
        return self.http.post(f"/v1/latch/{key}/release", json={"token": token})

    def look(self, key: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/latch/{key}")
        assert answer.status_code == 200, answer.text
        seen: dict[str, Any] = answer.json()
        return seen


@pytest.fixture(scope="session")
def connect(token: str) -> Iterator[Callable[..., Api]]:
    """Make clients."""
    made = list[httpx.Client]()

    def client(server: Server, token: str = token) -> Api:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        http = httpx.Client(base_url=server.url, headers=headers, timeout=40)
        made.append(http)
        return Api(http)

    yield client
    for http in made:
        http.close()


@pytest.fixture(scope="session")
def api(server: Server, connect: Callable[..., Api]) -> Api:
    """A client of the run's server."""
    return connect(server)


@pytest.fixture
def key() -> str:
    """A key of this test's own: the process counts some things per key."""
    return f"key:{secrets.token_hex(6)}"


@pytest.fixture
def secret() -> str:
    """A token of the client's own."""
    return secrets.token_hex(16)
