"""The pages, from a real web server with a real Valkey behind it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError

import pytest

from example_project.demo.services import Services
from example_project.demo.surroundings import ROOT

PASSWORD = "only-for-this-test"


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """Valkey and the web server, with sample data and no worker: calls stay in the queue."""
    with Services(tmp_path_factory.mktemp("site")) as running:
        running.start_valkey()
        running.env["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        manage(running, "migrate")
        manage(running, "add_sample_data")
        manage(
            running, "createsuperuser", "--no-input", "--username=ann", "--email=ann@example.com"
        )
        running.start_web()
        yield running


def manage(services, *arguments):
    command = [sys.executable, "-m", "django", *arguments]
    subprocess.run(command, env=services.env, cwd=ROOT, check=True, capture_output=True)


@pytest.fixture
def site(services, browse):
    """Fetches a page of the site, logged in."""
    browse.login(services.web_url, "ann", PASSWORD)
    return lambda path, fields=None: browse.get(services.web_url + path, fields)


def test_every_page_asks_for_a_login_first(services, browse):
    for path in ("", "invoices/1/", "invoices/1/pdf/"):
        browse.get(services.web_url + path)
        assert "/admin/login/" in browse.url


def test_the_overview_shows_accounts_and_invoices(site):
    page = site("")
    assert page.count("not running") == 3
    assert "Current account" in page
    assert len(re.findall(r'href="/invoices/\d+/"', page)) == 12
    assert "Imports are" not in page


def test_a_press_on_import_sends_a_call(site):
    site("")
    page = site("accounts/1/import/", {})
    assert re.search(r"Sent: invoicing.import_statement \([0-9a-f-]{36}\)", page)
    assert "The bank has sent a statement of Current account" in site("accounts/1/answer/", {})
    assert "Sent: invoicing.nightly_statements" in site("nightly/", {})


def test_an_invoice_and_what_can_be_done_with_it(site):
    page = site("invoices/3/")
    assert "Cedar Cycles" in page
    assert "not made yet" in page
    assert "Sent: invoicing.render_invoice" in site("invoices/3/render/", {})
    assert "Sent: invoicing.send_reminder" in site("invoices/3/remind/", {})
    with pytest.raises(HTTPError, match="404"):
        site("invoices/3/pdf/")
    with pytest.raises(HTTPError, match="404"):
        site("invoices/999/")


@pytest.mark.parametrize("path", ["accounts/1/import/", "accounts/1/answer/", "nightly/"])
def test_looking_changes_nothing(site, path):
    with pytest.raises(HTTPError, match="405"):
        site(path)


def test_pages_use_nothing_from_elsewhere(site):
    for page in (site(""), site("invoices/1/")):
        assets = re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="([^"]+)"', page)
        assert assets
        assert all(asset.startswith("/static/") for asset in assets)
        assert "style=" not in page
        assert "<script" not in page
    css = site("static/invoicing/style.css")
    assert "prefers-color-scheme: dark" in css
    assert "url(" not in css


@pytest.mark.parametrize(
    "model", ["account", "customer", "invoice", "payment", "skippedcall", "statementimport"]
)
def test_the_admin_lists_each_model(site, model):
    assert "<title>" in site(f"admin/invoicing/{model}/")


def test_the_sample_data_is_added_once(services):
    manage(services, "add_sample_data")
    code = "from example_project.invoicing.models import Invoice; print(Invoice.objects.count())"
    counted = subprocess.run(
        [sys.executable, "-m", "django", "shell", "-v", "0", "-c", code],
        env=services.env,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert counted.stdout.split()[-1] == "12"


def fetch(services, path):
    """Status, headers and body of what a monitor gets, without a login."""
    try:
        with urllib.request.urlopen(services.web_url + path, timeout=30) as response:
            return response.status, response.headers, json.load(response)
    except HTTPError as error:
        return error.code, error.headers, json.load(error)


def test_the_health_has_two_shapes_from_one_sweep(services):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: fetch(services, "health/"), range(24)))
    assert {status for status, _, _ in answers} == {200}
    assert all(body == {"status": "OK", "accounts": 3, "importing": 0} for *_, body in answers)
    full = [fetch(services, "health/?full") for _ in range(3)]
    assert len({body["checkedAt"] for *_, body in full}) == 1, "one sweep for all"
    assert full[0][2]["accounts"][0]["name"] == "Current account"
    assert int(full[0][1]["Age"]) < 60


def test_the_health_without_redis(tmp_path):
    with Services(tmp_path) as lonely:
        lonely.start_valkey()
        manage(lonely, "migrate")
        manage(lonely, "add_sample_data")
        lonely.start_web()
        assert fetch(lonely, "health/")[0] == 200
        lonely.valkey.stop()
        status, headers, body = fetch(lonely, "health/")
        assert (status, headers["Retry-After"]) == (503, "1")
        assert (body["status"], body["error"]) == ("REDIS_DOWN", "connection")
        assert body["checkedAt"] > "2026"


def test_the_overview_without_redis(tmp_path, browse):
    with Services(tmp_path) as lonely:
        lonely.start_valkey()
        lonely.env["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        manage(lonely, "migrate")
        manage(lonely, "add_sample_data")
        manage(lonely, "createsuperuser", "--no-input", "--username=ann", "--email=a@example.com")
        lonely.start_web()
        lonely.valkey.stop()
        page = browse.login(lonely.web_url, "ann", PASSWORD)
        assert "Which imports are running is not known" in page
        assert "Current account" in page
        page = browse.get(lonely.web_url + "accounts/1/import/", {})
        assert "The broker cannot be reached, nothing was sent" in page
