"""Freeing a lock: asked, confirmed with a reason, told."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from django_latch import inventory
from tests import servers
from tests.admin.pages import LIST
from tests.browser.conftest import Visiting
from tests.browser.visits import Visit
from tests.holding import Hold
from tests.integration.aliases import locks_at, timeouts

pytestmark = pytest.mark.browser


def confirm(seen: Visit, reason: str) -> None:
    """Fill in the confirmation page and send it."""
    seen.page.get_by_label("Reason:").fill(reason)
    seen.page.get_by_role("button", name="Release").click()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_from_the_page_of_a_lock(visit: Visiting, hold: Hold, scripts: bool) -> None:
    lease = hold("sync:42", task="billing.sync", label="the holder")
    seen = visit(
        "view_activelock", "release_activelock", user="operator", java_script_enabled=scripts
    )
    page = seen.go(LIST + "?q=sync")
    page.get_by_role("link", name="sync:42", exact=True).click()
    page.get_by_role("link", name="Release…").click()
    expect(page.locator("#content table tbody")).to_contain_text(lease.fingerprint)
    expect(page.locator("#content")).to_contain_text("Releasing does not stop a job")
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".errorlist")).to_have_text("This field is required.")
    assert inventory.get("sync:42") is not None
    confirm(seen, "the worker burnt down")
    seen.is_at(LIST + "?q=sync")
    seen.tells("1 lease was released.")
    assert inventory.get("sync:42") is None
    seen.go(LIST + "sync_3A42/history/")
    expect(page.locator("#change-history")).to_contain_text("the worker burnt down")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_several_from_the_list(visit: Visiting, hold: Hold, scripts: bool) -> None:
    for name in "abc":
        hold(name)
    seen = visit(java_script_enabled=scripts)
    page = seen.go(LIST)
    for name in "ac":
        page.locator(
            "#result_list tr", has=page.get_by_role("link", name=name, exact=True)
        ).locator("input[type=checkbox]").check()
    page.get_by_label("Action:").select_option("Release selected job locks")
    page.locator("button[name=index]").click()
    expect(page.locator("#content table tbody tr")).to_have_count(2)
    confirm(seen, "stuck")
    seen.tells("2 leases were released.")
    seen.shows("b")


def test_thinking_better_of_it(visit: Visiting, hold: Hold) -> None:
    hold("mail")
    seen = visit()
    page = seen.go(LIST + "release/?name=mail")
    page.get_by_text("No, take me back").click()
    seen.is_at(LIST)
    seen.shows("mail")


def test_one_of_several_holders(visit: Visiting, hold: Hold) -> None:
    first, second = (hold("mail", limit=2, label=label) for label in ("one", "two"))
    seen = visit()
    page = seen.go(LIST + "mail/change/")
    page.locator(".latch-holder").nth(1).get_by_text("Release this holder…").click()
    confirm(seen, "stuck")
    seen.tells("1 lease was released.")
    assert [holder.fence for holder in inventory.get("mail").holders] == [first.fence]
    assert second.fence != first.fence


def test_a_lock_acquired_again_meanwhile_stays_with_its_new_holder(
    visit: Visiting, hold: Hold
) -> None:
    first = hold("sync:42", label="the first")
    seen = visit()
    seen.go(LIST + "release/?name=sync:42")
    first.release()
    second = hold("sync:42", label="the second")
    confirm(seen, "stuck")
    seen.tells(re.compile("“sync:42” was not released: it was acquired again.* the second .*keeps"))
    second.renew()


def test_it_goes_to_the_first_who_waits(
    visit: Visiting, hold: Hold, queue_up: Callable[[str], None]
) -> None:
    lease = hold("mail")
    queue_up("mail")
    seen = visit()
    seen.go(LIST + "release/?name=mail")
    confirm(seen, "stuck")
    seen.tells("1 lease was released.")
    found = inventory.get("mail")  # the waiter had it, and may have let go of it again
    assert lease.fence not in [holder.fence for holder in (found.holders if found else ())]


def test_redis_is_down(visit: Visiting, hold: Hold) -> None:
    seen = visit()
    with servers.valkey() as server, locks_at(server.url, **timeouts(1)):
        hold("mail").detach()
        page = seen.go(LIST)
        seen.shows("mail")
        server.stop()
        for path in ("", "?q=mail", "?o=1", "mail/change/", "mail/history/", "release/?name=mail"):
            seen.go(LIST + path)
            expect(page.locator(".messagelist")).to_contain_text(
                "The lock store gave no usable answer"
            )
            expect(page.get_by_text("Traceback")).to_have_count(0)
        seen.go(LIST)
        expect(page.locator(".messagelist")).to_contain_text(
            "The list is empty, but locks may be held."
        )
        seen.picture("outage")
        seen.go("/admin/")
        expect(page.locator("h1")).to_have_text("Site administration")


def test_redis_is_silent_when_a_release_is_confirmed(visit: Visiting, hold: Hold) -> None:
    seen = visit()
    with servers.valkey() as server, locks_at(server.url, **timeouts(1)):
        hold("mail").detach()
        page = seen.go(LIST + "release/?name=mail")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            confirm(seen, "stuck")
            expect(page.locator(".messagelist")).to_contain_text(
                "The lock store gave no usable answer"
            )
        finally:
            os.kill(server.pid, signal.SIGCONT)
        confirm(seen, "stuck")  # the page kept the form
        seen.tells("1 lease was released.")
