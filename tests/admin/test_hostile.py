"""Names and owners that nobody would choose in good faith."""

from __future__ import annotations

import re

import pytest
import redis
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from django_latch import inventory
from tests.admin.pages import LIST, Page, ask, names_of
from tests.holding import Hold

MARKUP = "<script>alert('x')</script>\"&amp;"
NAMES = [
    MARKUP,
    "javascript:alert(1)",
    "a/b/../c",
    "..",
    ".",
    "a b  c ",
    " ",
    "%2F%00",
    "_2F__",
    "名前 Ω ñ 🔒",
    "e\u0301",
    "\u0645\u0631\u062d\u0628\u0627",
    "x" * 255,
    "🔒" * 255,
    "'; DROP TABLE--",
    "?q=1&p=2#x",
    "add",
    "release",
    "a\\b",
    "1:00000000:x",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_listed_seen_and_freed(client: Client, hold: Hold, name: str) -> None:
    hold(name)
    listed = client.get(LIST)
    assert names_of(listed) == [name]
    assert b"<script>alert" not in listed.content
    (link,) = [
        attrs["href"]
        for tag, attrs in Page(listed).tags
        if tag == "a" and attrs.get("href", "").endswith("/change/")
    ]
    detail = client.get(link)
    assert detail.status_code == 200
    assert detail.context["original"].name == name
    assert b"<script>alert" not in detail.content
    history = reverse("admin:django_latch_activelock_history", args=(quote(name),))
    assert client.get(history).status_code == 200
    action, data = ask(client, name)
    assert client.post(action, {**data, "reason": MARKUP}).status_code == 302
    assert inventory.get(name) is None
    assert b"<script>alert" not in client.get("/admin/").content


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_selected(client: Client, hold: Hold, name: str) -> None:
    hold(name)
    (box,) = [
        attrs["value"]
        for _, attrs in Page(client.get(LIST)).tags
        if attrs.get("name") == "_selected_action"
    ]
    data = {"action": "release_selected", "_selected_action": box, "index": "0"}
    action, fields = Page(client.post(LIST, data)).confirmation()
    response = client.post(action, {**fields, "reason": "x"}, follow=True)
    assert b"1 lease was released" in response.content
    assert inventory.get(name) is None


@pytest.mark.parametrize("page", ["", "mail/change/", "release/?name=mail", "?q=x", "?task=x"])
def test_an_owner_cannot_write_into_the_page(client: Client, hold: Hold, page: str) -> None:
    text = MARKUP + "\x1b[31m\x00\u202e\r\nx"
    facts = dict.fromkeys(("task", "task_id", "worker", "host", "args", "label", "root_id"), text)
    hold("mail", meta={text: text}, **facts)
    body = client.get(LIST + page).content.decode()
    assert "<script>alert" not in body
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", body.replace("\r\n", ""))


@pytest.mark.parametrize("query", ["q", "task", "worker", "o", "p", "name", "e"])
def test_a_query_cannot_write_into_the_page(client: Client, hold: Hold, query: str) -> None:
    hold("mail")
    response = client.get(LIST, {query: MARKUP}, follow=True)
    assert response.status_code == 200
    assert b"<script>alert" not in response.content


def test_a_record_of_another_type_hurts_only_its_own_lock(
    client: Client, hold: Hold, raw: redis.Redis
) -> None:
    hold("sound")
    hold("broken")
    (key,) = [key for key in raw.scan_iter("*broken*") if raw.type(key) == "hash"]
    raw.delete(key)
    raw.set(key, "x", ex=60)
    response = client.get(LIST)
    assert sorted(names_of(response)) == ["broken", "sound"]
    assert "unreadable" in response.content.decode()
    action, data = ask(client, "broken")
    response = client.post(action, {**data, "reason": "x"}, follow=True)
    assert response.status_code == 200
    assert "latch_clear --stale" in response.content.decode()
    raw.delete(key)
