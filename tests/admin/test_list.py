from __future__ import annotations

import pytest
from django.test import Client

from django_latch import inventory
from tests.admin.pages import LIST, Page, messages_of, names_of
from tests.holding import Hold


def test_shows_who_holds_what_and_how_long(client: Client, hold: Hold) -> None:
    lease = hold(
        "sync:42", task="billing.sync", worker="w1@web3", host="web3", pid=77, task_id="abc-1"
    )
    text = client.get(LIST).content.decode()
    cells = ("sync:42", "billing.sync", "w1@web3", "web3 (77)", str(lease.fence))
    for cell in cells:
        assert cell in text
    assert '<td class="field-expires_in"><span title="20' in text
    assert lease.token not in text


def test_a_lock_without_a_task_shows_its_label(client: Client, hold: Hold) -> None:
    hold("import", label="nightly import")
    assert '<td class="field-task">nightly import</td>' in client.get(LIST).content.decode()


def test_several_holders_are_counted(client: Client, hold: Hold) -> None:
    for number in range(3):
        hold("mail", limit=3, task=f"send{number}")
    text = client.get(LIST).content.decode()
    assert text.count('class="field-name"') == 1
    assert "send0 and 2 more" in text


def test_soonest_expiry_comes_first(client: Client, hold: Hold) -> None:
    for name, ttl in (("b", 300), ("c", 100), ("a", 200)):
        hold(name, ttl=ttl)
    assert names_of(client.get(LIST)) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("name", "abc"),
        ("task", "bca"),
        ("worker", "cab"),
        ("process", "cba"),
        ("held_for", "cab"),
        ("expires_in", "bca"),
        ("fence", "bac"),
    ],
)
def test_sorts_by_every_column_both_ways(
    client: Client, hold: Hold, column: str, expected: str
) -> None:
    for name, ttl, task, worker, host in (
        ("b", 100, "a", "3", "h2"),
        ("a", 300, "c", "2", "h3"),
        ("c", 200, "b", "1", "h1"),
    ):
        hold(name, ttl=ttl, task=task, worker=worker, host=host)
        while inventory.get(name).holder.held_for < 0.05:  # well apart on the server's clock
            pass
    number = 1 + list(client.get(LIST).context["cl"].list_display[1:]).index(column)
    assert names_of(client.get(LIST, {"o": str(number)})) == list(expected)
    assert names_of(client.get(LIST, {"o": f"-{number}"})) == list(expected[::-1])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("alpha", "a"),
        ("ALPHA", "a"),
        ("billing", "ab"),
        ("billing w2", "b"),
        ('"two words"', "c"),
        ("web9", "c"),
        ("id-7", "b"),
        ("nothing", ""),
        ("%", ""),
        ('"', "abc"),
    ],
)
def test_search(client: Client, hold: Hold, words: str, expected: str) -> None:
    hold("alpha", ttl=100, task="billing.sync", worker="w1")
    hold("beta", ttl=200, task="billing.close", worker="w2", task_id="id-7")
    hold("count", ttl=300, label="has two words", host="web9")
    assert [name[0] for name in names_of(client.get(LIST, {"q": words}))] == list(expected)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"task": "billing.sync"}, "ab"),
        ({"worker": "w2"}, "b"),
        ({"task": "billing.sync", "worker": "w1"}, "a"),
        ({"host": "web9"}, "c"),
        ({"state": "held"}, "abc"),
        ({"state": "offered"}, ""),
        ({"held_for": "86400"}, ""),
        ({"held_for": "0"}, "abc"),
        ({"waiters": "some"}, ""),
        ({"waiters": "none"}, "abc"),
        ({"task": "<script>"}, ""),
        ({"name": "a"}, "a"),
        ({"name__startswith": "b"}, "b"),
    ],
)
def test_filters(client: Client, hold: Hold, filters: dict[str, str], expected: str) -> None:
    hold("a", ttl=100, task="billing.sync", worker="w1", host="web1")
    hold("b", ttl=200, task="billing.sync", worker="w2", host="web1")
    hold("c", ttl=300, task="mail.send", worker="w3", host="web9")
    response = client.get(LIST, filters)
    assert names_of(response) == list(expected)
    assert "<script>alert" not in response.content.decode()


def test_filters_offer_what_there_is(client: Client, hold: Hold) -> None:
    hold("a", task="billing.sync", worker="w1")
    hold("b", task="mail.send", worker="w2")
    links = [attrs.get("href", "") for tag, attrs in Page(client.get(LIST)).tags if tag == "a"]
    assert {"?task=billing.sync", "?task=mail.send", "?worker=w1", "?worker=w2"} <= set(links)
    chosen = Page(client.get(LIST, {"task": "mail.send"}))
    links = [attrs.get("href", "") for tag, attrs in chosen.tags if tag == "a"]
    assert "?task=billing.sync" in links  # the way to the other one stays


@pytest.mark.parametrize(
    "query",
    [{"held_for": "nan-sense"}, {"waiters__gt": "x"}, {"colour": "red"}, {"name__regex": "."}],
)
def test_a_filter_that_makes_no_sense_never_shows_everything(
    client: Client, hold: Hold, query: dict[str, str]
) -> None:
    hold("a")
    response = client.get(LIST, query)
    assert (response.status_code, response["Location"]) == (302, f"{LIST}?e=1")


def test_pages(client: Client, hold: Hold) -> None:
    for number in range(101):
        hold(f"lock{number:03}", ttl=100 + number)
    first, second = client.get(LIST), client.get(LIST, {"p": "2"})
    assert first.context["cl"].result_count == 101
    assert names_of(first) == [f"lock{number:03}" for number in range(100)]
    assert names_of(second) == ["lock100"]
    assert names_of(client.get(LIST, {"all": ""})) == [f"lock{n:03}" for n in range(101)]
    assert names_of(client.get(LIST, {"o": "-1"}))[0] == "lock100"


@pytest.mark.parametrize("page", ["3", "99999999", "0", "-1", "x"])
def test_a_page_that_is_gone_shows_one_that_is_there(client: Client, hold: Hold, page: str) -> None:
    for number in range(101):
        hold(f"lock{number:03}", ttl=100 + number)
    assert len(names_of(client.get(LIST, {"p": page}))) in (1, 100)


def test_says_when_a_scan_was_cut(
    client: Client, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_latch.live.queryset.MAXIMUM", 2)
    for number in range(3):
        hold(f"lock{number}")
    assert messages_of(client.get(LIST)) == []
    response = client.get(LIST, {"q": "lock"})
    assert len(names_of(response)) == 2
    assert [m for m in messages_of(response) if m.startswith("There are more locks")]


def test_an_empty_list_offers_nothing(client: Client) -> None:
    response = client.get(LIST)
    assert names_of(response) == []
    assert not response.context["cl"].has_filters
    assert 'name="action"' not in response.content.decode()
