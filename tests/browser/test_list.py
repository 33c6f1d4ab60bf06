"""The list of locks, and the page of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from django_latch import inventory
from tests.admin.pages import LIST
from tests.browser.conftest import Visiting
from tests.browser.sample import MARKUP, ODD, busy
from tests.holding import Hold

pytestmark = pytest.mark.browser

COLUMNS = [
    "Key",
    "Task",
    "Held for",
    "Expires in",
    "Waiters",
    "Worker",
    "Process",
    "Fence",
]


def test_a_login_leads_to_the_list(visit: Visiting, hold: Hold) -> None:
    hold("mail")
    visit(user="root").context.close()  # now there is such a user
    seen = visit(user="")
    page = seen.go(LIST)
    page.get_by_label("Username").fill("root")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_title("Select job lock to view | Django site admin")
    seen.shows("mail")


def test_an_empty_list(visit: Visiting) -> None:
    seen = visit()
    page = seen.go(LIST)
    expect(page.locator(".paginator")).to_contain_text("0 job locks")
    expect(page.get_by_text("Show all")).to_have_count(0)
    expect(page.get_by_label("Action:")).to_have_count(0)
    seen.tells()


def test_columns_in_order_of_use(visit: Visiting, hold: Hold) -> None:
    hold("sync:1", task="billing.sync", worker="w1@web3", host="web3", pid=77)
    page = visit().go(LIST)
    heads = page.locator("#result_list thead th:not(.action-checkbox-column)")
    assert [head.strip().capitalize() for head in heads.all_inner_texts()] == COLUMNS
    row = page.locator("#result_list tbody tr")
    for text in ("billing.sync", "w1@web3", "web3 (77)"):
        expect(row).to_contain_text(text)
    expires = row.locator(".field-expires_in span")
    expect(expires).to_have_attribute("title", str(_second(inventory.get("sync:1"))))


def _second(lock: inventory.LockInfo | None) -> str:
    assert lock is not None
    assert lock.holder is not None
    return lock.holder.expires_at.isoformat(" ", "seconds")


@pytest.mark.parametrize(
    ("column", "up", "down"),
    [
        ("Key", "abc", "cba"),
        ("Task", "cba", "abc"),
        ("Held for", "cab", "bac"),
        ("Expires in", "abc", "cba"),
        ("Waiters", "bac", "cba"),  # two are equal, and then in one order
        ("Worker", "cab", "bac"),
        ("Process", "acb", "bca"),
        ("Fence", "bac", "cab"),
    ],
)
def test_sorts_by_a_click_and_the_other_way_by_another(
    visit: Visiting, hold: Hold, queue_up: Callable[[str], None], column: str, up: str, down: str
) -> None:
    for name, task, worker, host, ttl in (
        ("b", "2", "3", "3", 300),
        ("a", "3", "2", "1", 200),
        ("c", "1", "1", "2", 400),
    ):
        hold(name, ttl=ttl, task=task, worker=worker, host=host)
        while inventory.get(name).holder.held_for < 0.05:  # well apart on the server's clock
            pass
    queue_up("c")
    seen = visit()
    head = seen.go(LIST).locator("#result_list thead .text a").get_by_text(column, exact=True)
    for direction, order in (("", up), ("-", down)):
        head.click()
        seen.is_at(f"{LIST}?o={direction}{COLUMNS.index(column) + 1}")
        seen.shows(*order)


def test_search_and_filters_narrow_the_list(visit: Visiting, hold: Hold) -> None:
    busy(hold)
    seen = visit()
    page = seen.go(LIST)
    rows = page.locator("#result_list .field-name")
    expect(rows).to_have_count(13 + len(ODD))
    page.locator("#searchbar").fill("web1 mail")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".paginator")).to_contain_text("1 job lock")
    seen.shows("mail.send:4748")
    page.get_by_role("link", name="Show all").click()
    page.locator("#changelist-filter").get_by_role("link", name="billing.sync_customer").click()
    page.locator("#changelist-filter").get_by_role("link", name="celery@web2").click()
    expect(page.locator(".paginator")).to_contain_text("1 job lock")
    seen.shows("billing.sync_customer:4933")
    page.get_by_role("link", name="Clear all filters").click()
    expect(page.locator(".paginator")).to_contain_text(f"{13 + len(ODD)} job locks")


def test_pages(visit: Visiting, hold: Hold) -> None:
    for number in range(101):
        hold(f"lock{number:03}", ttl=100 + number)
    seen = visit()
    page = seen.go(LIST)
    rows = page.locator("#result_list .field-name")
    expect(rows).to_have_count(100)
    page.locator(".paginator a", has_text="2").click()
    seen.is_at(LIST + "?p=2")
    seen.shows("lock100")
    page.locator(".paginator a", has_text="Show all").click()
    seen.is_at(LIST + "?all=")
    expect(rows).to_have_count(101)


def test_odd_names_are_shown_and_lead_to_their_pages(visit: Visiting, hold: Hold) -> None:
    busy(hold)
    seen = visit()
    page = seen.go(LIST)
    assert set(ODD) <= set(page.locator("#result_list .field-name").all_inner_texts())
    for name in ODD:
        seen.go(LIST)
        page.locator("#result_list").get_by_role("link", name=name, exact=True).click()
        expect(page.locator(".field-name .readonly")).to_have_text(name)
        expect(page.locator(".latch-holder")).to_contain_text(f"{ODD[name]}.{MARKUP}")


def test_the_page_of_a_lock_with_its_holder_and_those_who_wait(
    visit: Visiting, hold: Hold, queue_up: Callable[[str], None]
) -> None:
    lease = hold("mail", task="mail.send", task_id="id-1", args="(12,)", worker="w1@web3")
    for _ in range(2):
        queue_up("mail")
    page = visit().go(LIST + "mail/change/")
    expect(page.locator(".field-waiters .readonly")).to_have_text("2")
    facts = _facts(page.locator(".latch-holder"))
    assert facts["Task"] == "mail.send"
    assert facts["Arguments"] == "(12,)"
    assert facts["Fence"] == str(lease.fence)
    assert facts["Fingerprint"] == lease.fingerprint
    assert inventory.get("mail").holder.expires_at.strftime("%H:%M:%S") in facts["Expires"]
    assert lease.token not in page.content()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)


def _facts(holder: Locator) -> dict[str, str]:
    names = holder.locator("dt").all_inner_texts()
    return dict(zip(names, holder.locator("dd").all_inner_texts(), strict=True))


def test_a_lock_that_has_ended_meanwhile(visit: Visiting, hold: Hold) -> None:
    lease = hold("mail")
    seen = visit()
    page = seen.go(LIST)
    lease.release()
    page.get_by_role("link", name="mail", exact=True).click()
    seen.tells("No job lock “mail” is held or waited for now.")
    seen.is_at(LIST)


def test_who_may_only_see_is_offered_no_release(visit: Visiting, hold: Hold) -> None:
    hold("mail")
    seen = visit("view_activelock", user="viewer")
    page = seen.go(LIST)
    seen.shows("mail")
    expect(page.get_by_label("Action:")).to_have_count(0)
    page.get_by_role("link", name="mail", exact=True).click()
    expect(page.locator(".latch-holder")).to_be_visible()
    expect(page.get_by_text("Release")).to_have_count(0)
    seen.go(LIST + "release/?name=mail")
    expect(page.locator("h1")).to_have_text("403 Forbidden")
    refused = [error for error in seen.errors if "403" in error]
    assert len(refused) == 2  # the response, and the console on it
    assert seen.errors == refused
    seen.errors.clear()
    assert inventory.get("mail") is not None
