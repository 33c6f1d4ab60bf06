"""What WSGI can do: everything, but a wait blocks the worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.conftest import Api
from tests.api.server import Server

pytestmark = pytest.mark.api


@pytest.fixture(scope="module")
def wsgi(gunicorn: Server, connect: Callable[..., Api]) -> Api:
    return connect(gunicorn)


def test_a_whole_life(wsgi: Api, key: str, secret: str) -> None:
    first = wsgi.take(key, token=secret, ttl=20)
    assert wsgi.take(key, token=secret, ttl=20)["fence"] == first["fence"]
    assert wsgi.acquire(key).json()["code"] == "busy"
    assert wsgi.look(key)["locked"] is True
    assert wsgi.release(key, secret[:-1]).status_code == 403
    assert wsgi.release(key, secret).status_code == 200
    assert wsgi.look(key)["locked"] is False


def test_a_short_wait(wsgi: Api, key: str) -> None:
    wsgi.take(key, ttl=20)
    answer = wsgi.acquire(key, timeout=1)
    assert answer.status_code == 408
    assert 1.0 <= answer.elapsed.total_seconds() < 3
    assert answer.json()["position"] == 1


def test_a_wait_that_is_granted(wsgi: Api, key: str) -> None:
    wsgi.take(key, ttl=1)
    assert 0.9 <= wsgi.take(key, timeout=5)["waited"] < 3


@pytest.mark.parametrize("path", ["a%2Frelease", "a/b", "%ff", "a%0Ab"])
def test_bad_keys(wsgi: Api, path: str) -> None:
    answer = wsgi.http.post(f"/v1/latch/{path}", json={"token": "x" * 32})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_key")


def test_large_bodies(wsgi: Api, key: str) -> None:
    answer = wsgi.http.post(f"/v1/latch/{key}", content=b" " * 1_000_000)
    assert answer.status_code == 413


def test_no_authorization(gunicorn: Server, connect: Callable[..., Api], key: str) -> None:
    assert connect(gunicorn, "").acquire(key).status_code == 401
