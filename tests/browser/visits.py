"""A browser that notes whatever goes wrong on a page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.contrast import FAINT

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

#: Where pictures of the pages go; none are taken without it.
PICTURES = os.environ.get("LATCH_PICTURES", "")

#: Longest wait for something to show, in milliseconds.
PATIENCE = 10_000


class Visit:
    """One window of a browser, on one site.

    `errors` has what the console, the page's scripts and the network complained about, and every
    request to elsewhere. A test that provokes something takes it out.
    """

    def __init__(self, context: BrowserContext, site: str) -> None:
        self.site = site
        self.errors: list[str] = []
        self.context = context
        context.set_default_timeout(PATIENCE)
        self.page: Page = context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(f"script: {error}"))
        self.page.on("request", self._request)
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        # The admin names no icon, so browsers look for one; the site has none.
        icon = message.location["url"] == f"{self.site}/favicon.ico"
        if message.type in ("error", "warning") and not icon:
            self.errors.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(self.site):
            self.errors.append(f"elsewhere: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the window went elsewhere, or was closed
            self.errors.append(f"failed: {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.errors.append(f"{response.status}: {response.url}")

    def go(self, path: str) -> Page:
        """Open a page of the site; returns its window."""
        self.page.goto(self.site + path)
        return self.page

    def shows(self, *names: str) -> None:
        """The list on the page comes to have these keys, in this order."""
        from playwright.sync_api import expect

        expect(self.page.locator("#result_list .field-name")).to_have_text(list(names))

    def tells(self, *texts: str | re.Pattern[str]) -> None:
        """The page comes to tell this about the last action."""
        from playwright.sync_api import expect

        expect(self.page.locator(".messagelist li, .messages li")).to_have_text(list(texts))

    def is_at(self, path: str) -> None:
        """The window comes to be at this page."""
        from playwright.sync_api import expect

        expect(self.page).to_have_url(self.site + path)

    def faint(self, within: str = "body") -> list[dict[str, Any]]:
        """Texts that stand out too little from what is behind them; see contrast.py."""
        found: list[dict[str, Any]] = self.page.locator(within).first.evaluate(FAINT)
        return found

    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        code = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        wider: int = self.page.evaluate(code)
        return wider

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page, where pictures are wanted."""
        if PICTURES:
            name = re.sub(r"[^\w-]+", "-", name)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
