from __future__ import annotations

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from tests.admin.pages import LIST, Page, messages_of
from tests.holding import Hold


def page_of(name: str) -> str:
    from django.contrib.admin.utils import quote

    return reverse("admin:django_latch_activelock_change", args=(quote(name),))


def test_shows_all_facts_of_all_holders(client: Client, hold: Hold) -> None:
    leases = [
        hold(
            "mail",
            limit=2,
            task="mail.send",
            task_id=f"id-{number}",
            worker="w1@web3",
            host="web3",
            pid=4711,
            args=f"({number}, 'x')",
            root_id="root-1",
            parent_id="parent-1",
            retries=2,
            meta={"customer": 12},
        )
        for number in (1, 2)
    ]
    text = client.get(page_of("mail")).content.decode()
    for lease, number in zip(leases, (1, 2), strict=True):
        for fact in (
            f"id-{number}",
            f"({number}, &#x27;x&#x27;)",
            str(lease.fence),
            lease.fingerprint,
        ):
            assert f"<dd>{fact}</dd>" in text
        assert f"Holder {number} of 2" in text
        assert lease.token not in text
    for fact in ("mail.send", "w1@web3", "web3", "4711", "root-1", "parent-1", "1 min"):
        assert f"<dd>{fact}</dd>" in text
    assert "{&quot;customer&quot;: 12}" in text


def test_offers_nothing_to_save(client: Client, hold: Hold) -> None:
    hold("mail")
    response = client.get(page_of("mail"))
    fields = {name for _, form in Page(response).forms for name, _ in form}
    assert fields == {"csrfmiddlewaretoken"}
    assert client.post(page_of("mail"), {"name": "other"}).status_code == 403


def test_leads_to_the_release_of_all_holders_or_of_one(client: Client, hold: Hold) -> None:
    leases = [hold("mail & co", limit=2) for _ in range(2)]
    response = client.get(page_of("mail & co"))
    links = [a["href"] for tag, a in Page(response).tags if a.get("class") == "latch-release"]
    asked = [Page(client.get(link)).confirmation()[1]["lease"] for link in links]
    both = [f"{lease.fence}:{lease.fingerprint}:mail & co" for lease in leases]
    assert asked == [both, both[:1], both[1:]]


def test_comes_back_to_the_list_as_it_was_filtered(client: Client, hold: Hold) -> None:
    hold("mail", task="mail.send")
    listed = Page(client.get(LIST, {"task": "mail.send"}))
    (link,) = [a["href"] for tag, a in listed.tags if tag == "a" and "/mail/change/" in a["href"]]
    page = Page(client.get(link))
    (link,) = [a["href"] for tag, a in page.tags if a.get("class") == "latch-release"]
    page = Page(client.get(link))
    action, data = page.confirmation()
    assert f"{LIST}?task=mail.send" in [a["href"] for tag, a in page.tags if tag == "a"]
    response = client.post(action, {**data, "reason": "x"})
    assert response["Location"] == f"{LIST}?task=mail.send"


def test_a_lock_that_is_gone_is_said_to_be(client: Client) -> None:
    response = client.get(page_of("gone"), follow=True)
    assert response.redirect_chain == [(LIST, 302)]
    assert messages_of(response) == ["No job lock “gone” is held or waited for now."]


@pytest.mark.parametrize(
    ("setting", "href"),
    [
        (None, None),
        ("https://flower.example/task/{task_id}", "https://flower.example/task/id%2F1%3F"),
    ],
)
def test_links_the_task(client: Client, hold: Hold, setting: str | None, href: str | None) -> None:
    hold("mail", task_id="id/1?")
    with override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks", "TASK_URL": setting}):
        page = Page(client.get(page_of("mail")))
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert [link for link in links if "flower" in link] == ([href] if href else [])


def test_history_names_who_released_and_why(client: Client, hold: Hold) -> None:
    hold("mail")
    page = Page(client.get(LIST + "release/", {"name": "mail"}))
    action, data = page.confirmation()
    client.post(action, {**data, "reason": "worker burnt down"})  # the lock is free now
    text = client.get(reverse("admin:django_latch_activelock_history", args=("mail",)))
    assert "worker burnt down" in text.content.decode()
    assert "root" in text.content.decode()
