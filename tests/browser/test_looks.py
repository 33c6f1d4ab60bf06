"""What can be measured of looks: contrast, and that nothing hangs over the edge.

With LATCH_PICTURES=folder a picture of each page is kept there, to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.admin.pages import LIST
from tests.browser.conftest import NARROW, WIDE, Visiting
from tests.browser.sample import LONG, busy
from tests.browser.test_tokens import TOKENS
from tests.browser.visits import Visit
from tests.holding import Hold

pytestmark = pytest.mark.browser

PAGES = {
    "list": LIST,
    "filtered": LIST + "?q=mail&task=mail.send",
    "by worker": LIST + "?o=6",
    "lock": LIST + "mail.send_3A4748/change/",
    "several holders": LIST + "import_3Astatements/change/",
    "long name": LIST + f"{LONG}/change/",
    "history": LIST + f"{LONG}/history/",
    "confirmation": LIST + "release/?name=import:statements",
    "nothing to release": LIST + "release/?name=gone",
    "new token": TOKENS + "add/",
    "index": "/admin/",
}


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read(
    visit: Visiting, hold: Hold, queue_up: Callable[[str], None], scheme: str, width: int
) -> None:
    seen = visit(color_scheme=scheme, width=width)

    def look(name: str) -> None:
        seen.picture(f"{name} {scheme} {width}")
        assert seen.faint() == [], name
        assert seen.sideways() == 0, name

    seen.go(LIST)
    look("empty list")
    busy(hold)
    queue_up("mail.send:4748")
    for name, path in PAGES.items():
        seen.go(path)
        look(name)
    release(seen, look)


def release(seen: Visit, look: Callable[[str], None]) -> None:
    """The pages that need something to be sent."""
    page = seen.go(LIST + "release/?" + urlencode({"name": LONG}))
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".errorlist")).to_be_visible()
    look("confirmation without a reason")
    page.get_by_label("Reason:").fill("stuck since the deployment")
    page.get_by_role("button", name="Release").click()
    seen.tells("1 lease was released.")
    look("released")
    seen.go(f"{LIST}{LONG}/history/")
    look("history of a free lock")
    seen.go(f"{LIST}{LONG}/change/")
    seen.is_at(LIST)
    look("a lock that is gone")
    seen.go(TOKENS + "add/")
    page.get_by_label("Account:").fill("ci")
    page.get_by_label("Scopes:").fill("sync\ndeploy:prod")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist code")).to_be_visible()
    look("secret of a token")
