"""The pages of the example project, from its own web server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from example_project.demo.services import Services
from example_project.demo.surroundings import ROOT
from tests.browser.conftest import NARROW, WIDE, windows
from tests.browser.visits import Visit

pytestmark = pytest.mark.browser

PASSWORD = "only-for-this-test"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site with sample data and a worker."""
    with Services(tmp_path_factory.mktemp("site")) as running:
        running.start_valkey()
        running.env["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        for command in (
            ("migrate",),
            ("add_sample_data",),
            ("createsuperuser", "--no-input", "--username=ann", "--email=ann@example.com"),
        ):
            subprocess.run(
                [sys.executable, "-m", "django", *command],
                env=running.env,
                cwd=ROOT,
                check=True,
                capture_output=True,
            )
        running.start_worker()
        running.start_web()
        yield running.web_url.rstrip("/")


def enter(seen: Visit) -> None:
    """Log in; the first page is the overview."""
    page = seen.go("/")
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("h1")).to_have_text("Bank accounts")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_an_import_is_started_seen_skipped_and_answered(
    chromium: Browser, site: str, scripts: bool
) -> None:
    with windows(chromium) as window:
        seen = window(site, java_script_enabled=scripts)
        enter(seen)
        page, account = seen.page, seen.page.locator(".accounts tbody tr").first
        skipped = page.get_by_role("heading", name="Skipped calls").locator(
            "+ div tbody tr td.code"
        )
        before = skipped.count()
        account.get_by_role("button", name="Import").click()
        expect(page.locator(".messages")).to_contain_text("Sent: invoicing.import_statement")
        _look_until(seen, lambda: account.locator(".running").count() == 1)
        seen.picture("example running")
        account.get_by_role("button", name="Import").click()
        _look_until(seen, lambda: skipped.count() == before + 1)
        page.get_by_role("link", name="Locked jobs").click()
        expect(page.locator("#result_list tbody tr")).to_have_count(1)
        expect(page.locator("#result_list")).to_contain_text("invoicing.import_statement")
        seen.go("/")
        account.get_by_role("button", name="Let the bank answer").click()
        expect(page.locator(".messages")).to_contain_text("The bank has sent a statement")
        _look_until(seen, lambda: account.locator(".running").count() == 0)


def _look_until(seen: Visit, condition: Callable[[], bool]) -> None:
    """Press "Look again" until the page shows what it should; the worker takes its time."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, seen.page.locator("main").inner_text()
        seen.page.get_by_role("link", name="Look again").click()
        seen.page.wait_for_load_state()


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read(chromium: Browser, site: str, scheme: str, width: int) -> None:
    with windows(chromium) as window:
        seen = window(site, color_scheme=scheme, width=width)
        enter(seen)
        paths = {
            "overview": "/",
            "invoice": "/invoices/3/",
            "invoices": "/admin/invoicing/invoice/",
        }
        for name, path in paths.items():
            seen.go(path)
            seen.picture(f"example {name} {scheme} {width}")
            assert seen.faint() == [], name
            assert seen.sideways() == 0, name


def test_an_invoice_gets_its_pdf(chromium: Browser, site: str) -> None:
    with windows(chromium) as window:
        seen = window(site)
        enter(seen)
        page = seen.page
        page.locator("a[href^='/invoices/']").first.click()
        page.get_by_role("button", name="Make the PDF").click()
        expect(page.locator(".messages")).to_contain_text("Sent: invoicing.render_invoice")
        end = time.monotonic() + 20
        while page.get_by_role("link", name="Open").count() == 0:
            assert time.monotonic() < end, "the worker made no PDF"
            page.goto(page.url)
        href = page.get_by_role("link", name="Open").get_attribute("href")
        answer = seen.context.request.get(site + (href or ""))
        assert answer.headers["content-type"] == "application/pdf"
        assert answer.body().startswith(b"%PDF-1.4")
