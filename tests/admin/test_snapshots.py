"""The list of snapshots."""

from __future__ import annotations

import pytest
import redis
from django.test import Client

from django_latch import snapshot
from tests.admin.pages import LIST
from tests.integration import audit
from tests.integration.aliases import locks_at

URL = LIST + "snapshots/"


def test_it_shows_age_state_error_and_compute_time(client: Client, raw: redis.Redis) -> None:
    snapshot("health", lambda: "a value that is no matter of the page")
    with pytest.raises(ValueError, match="<b>"):
        snapshot("front:<page>", lambda: int("<b>"))
    size = raw.dbsize()
    page = client.get(URL).content.decode()
    assert "health" in page
    assert "fresh" in page
    assert "front:&lt;page&gt;" in page
    assert "no value" in page
    assert "ValueError: invalid literal" in page
    assert "<b>" not in page.split("<table>")[1]
    assert "no matter of the page" not in page
    assert raw.dbsize() == size
    assert "style=" not in page.split("<body")[1]


def test_the_list_of_locks_leads_to_it(client: Client) -> None:
    assert f'href="{URL}"' in client.get(LIST).content.decode()
    assert "Nothing is kept of any snapshot." in client.get(URL).content.decode()


def test_it_says_that_the_store_is_down(client: Client) -> None:
    with locks_at("redis://127.0.0.1:1/0"):
        response = client.get(URL)
    assert response.status_code == 200
    assert "no usable answer (connection)" in response.content.decode()
    assert "127.0.0.1" not in response.content.decode()


def test_a_broken_one_hurts_only_its_row(client: Client, raw: redis.Redis) -> None:
    snapshot("health", lambda: 1)
    snapshot("front", lambda: 1)
    raw.set(audit.key("S", "snapshot:1:front"), "something else")
    page = client.get(URL).content.decode()
    assert "unreadable" in page
    assert "fresh" in page
    raw.delete(audit.key("S", "snapshot:1:front"))


def test_looking_is_a_get(client: Client) -> None:
    assert client.post(URL).status_code == 405
