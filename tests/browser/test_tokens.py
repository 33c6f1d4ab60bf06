"""The tokens of the HTTP API: made, shown once, revoked."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from django_latch.models import ApiToken
from tests.browser.conftest import Visiting

pytestmark = pytest.mark.browser

TOKENS = "/admin/django_latch/apitoken/"


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_secret_is_shown_once(visit: Visiting, scripts: bool) -> None:
    seen = visit(java_script_enabled=scripts)
    page = seen.go(TOKENS)
    page.get_by_role("link", name="Add API token").click()
    page.get_by_label("Account:").fill("ci")
    page.get_by_label("Scopes:").fill("sync:*")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist").last).to_contain_text("is no scope")
    page.get_by_label("Scopes:").fill("sync\ndeploy:prod")
    page.get_by_role("button", name="Save", exact=True).click()
    secret = page.locator(".messagelist code").inner_text()
    token = ApiToken.objects.get()
    assert token.digest == ApiToken.digest_of(secret)
    assert secret not in page.url
    page.reload()
    assert secret not in page.content()
    page.locator("#result_list").get_by_role("link", name="ci").click()
    expect(page.locator(".field-scopes .readonly")).to_have_text(
        "sync deploy:prod", use_inner_text=True
    )
    assert secret not in page.content()
    assert token.digest not in page.content()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)


def test_a_token_is_revoked_and_stays_in_the_list(visit: Visiting) -> None:
    ApiToken(account="ci", scopes="*").issue()
    page = visit().go(TOKENS)
    expect(page.locator(".field-revoked_at")).to_have_text("-")
    page.locator("#result_list tbody").get_by_role("checkbox").check()
    page.get_by_label("Action:").select_option("Revoke the selected tokens")
    page.locator("button[name=index]").click()
    expect(page.locator(".field-revoked_at")).not_to_have_text("-")
    assert ApiToken.objects.get().revoked_at is not None


def test_who_may_only_see_tokens_cannot_make_or_revoke_them(visit: Visiting) -> None:
    ApiToken(account="ci", scopes="*").issue()
    page = visit("view_apitoken", user="viewer").go(TOKENS)
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="Add API token")).to_have_count(0)
    expect(page.get_by_label("Action:")).to_have_count(0)
