"""Redis down, paused, or with another password: a notice, in time, and no secret."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from django_latch import LatchUnavailable, inventory
from tests import servers
from tests.admin.pages import LIST, Page, ask, messages_of, names_of
from tests.holding import Hold

SECRET = "hunter2-secret"
PAGES = ["", "?q=x", "?o=2&task=x", "?p=7", "mail/change/", "mail/history/", "release/?name=mail"]


def caches(url: str) -> dict[str, Any]:
    """The settings of a cache that waits one second."""
    wait = {"SOCKET_CONNECT_TIMEOUT": 1, "SOCKET_TIMEOUT": 1}
    return {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
        "locks": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": url,
            "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 1, "SOCKET_TIMEOUT": 1, **wait},
        },
    }


@pytest.fixture
def refused() -> Iterator[str]:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"redis://user:{SECRET}@127.0.0.1:{taken.getsockname()[1]}/0"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that is stopped: connections are made, nothing is answered."""
    with servers.valkey() as server:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            yield server.url
        finally:
            os.kill(server.pid, signal.SIGCONT)


@pytest.fixture
def locked(valkey: Any) -> str:
    """The test server, with a password it never heard of."""
    return valkey.url.replace("redis://", f"redis://user:{SECRET}@")


@pytest.fixture(params=["refused", "silent", "locked"])
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    url = request.getfixturevalue(request.param)
    with override_settings(CACHES=caches(url)):
        yield request.param


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_so_in_time(client: Client, broken: str, page: str) -> None:
    began = time.monotonic()
    response = client.get(LIST + page)
    assert time.monotonic() - began < 1 + 2
    assert response.status_code == 200
    (text,) = messages_of(response)
    assert text.startswith("The lock store gave no usable answer")
    assert SECRET.encode() not in response.content
    assert b"127.0.0.1:" not in response.content
    if "cl" in response.context:
        assert names_of(response) == []
        assert "locks may be held" in text


def test_the_index_is_untouched(client: Client, broken: str) -> None:
    response = client.get("/admin/")
    assert response.status_code == 200
    assert messages_of(response) == []


def test_a_release_says_that_it_failed(client: Client, hold: Hold, refused: str) -> None:
    hold("mail")
    action, data = ask(client, "mail")
    with override_settings(CACHES=caches(refused)):
        response = client.post(action, {**data, "reason": "x"})
    assert response.status_code == 200
    assert Page(response).confirmation() == (action, data)  # it can be sent again
    assert b"no longer holds it" not in response.content
    assert "no usable answer" in messages_of(response)[0]
    assert inventory.get("mail") is not None


def test_an_outage_half_way_is_said(
    client: Client, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        hold(name)
    data = {"action": "release_selected", "_selected_action": list("abc"), "index": "0"}
    action, fields = Page(client.post(LIST, data)).confirmation()
    clear, calls = inventory.clear, []

    def break_down(name: str, **more: Any) -> None:
        calls.append(name)
        if len(calls) == 2:
            raise LatchUnavailable(reason="timeout")
        clear(name, **more)

    monkeypatch.setattr(inventory, "clear", break_down)
    response = client.post(action, {**fields, "reason": "x"}, follow=True)
    assert messages_of(response) == [
        "The lock store gave no usable answer (timeout).",
        "1 lease was released.",
    ]
    assert len(calls) == 2


def test_an_action_says_that_it_failed(client: Client, refused: str) -> None:
    data = {"action": "release_selected", "_selected_action": "mail", "index": "0"}
    with override_settings(CACHES=caches(refused)):
        response = client.post(LIST, data)
    assert response.status_code == 200
    assert "no usable answer" in messages_of(response)[0]


@pytest.mark.parametrize("latch", [{}, {"CACHE_ALIAS": "nowhere"}, {"TTL": "x"}])
def test_a_store_that_is_not_one_is_said_to_be(client: Client, latch: dict[str, str]) -> None:
    with override_settings(DJANGO_LATCH=latch):
        response = client.get(LIST)
    assert response.status_code == 200
    assert "manage.py check" in messages_of(response)[0]
