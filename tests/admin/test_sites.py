"""The pages under other sites, settings, languages, users and policies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client, override_settings
from django.test.utils import override_script_prefix
from django.utils.timezone import get_default_timezone
from django.utils.translation import override

from django_latch import inventory
from tests.admin.pages import LIST, Page, ask, names_of
from tests.holding import Hold

PAGES = ["", "?o=2&q=a", "mail/change/", "mail/history/", "release/?name=mail"]


@pytest.fixture
def mail(hold: Hold) -> None:
    hold("mail", task="a.task", worker="w1")


@pytest.mark.urls("tests.admin.urls")
@pytest.mark.usefixtures("mail")
def test_another_site_keeps_to_its_own_pages(client: Client) -> None:
    base = "/ops/django_latch/activelock/"
    for page in PAGES:
        response = client.get(base + page)
        assert response.status_code == 200
        assert "Operations" in response.content.decode()
        links = [attrs.get("href", "") for tag, attrs in Page(response).tags if tag == "a"]
        assert [link for link in links if "/admin/" in link] == []
    action, data = Page(client.get(base + "release/", {"name": "mail"})).confirmation()
    response = client.post(action, {**data, "reason": "x"})
    assert response["Location"] == base
    assert inventory.get("mail") is None


@contextmanager
def below_shop() -> Iterator[None]:
    """The site is served below /shop/, as FORCE_SCRIPT_NAME does it in the handler."""
    # The setting makes Django forget the address of static files, before and after.
    with override_settings(STATIC_URL=settings.STATIC_URL), override_script_prefix("/shop/"):
        yield


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("mail")
def test_under_a_script_name(client: Client, page: str) -> None:
    with below_shop():
        response = client.get(LIST + page)
    assert response.status_code == 200
    tags = Page(response).tags
    # "/" is "View site", which asks the request, not the prefix.
    hrefs = [a["href"] for tag, a in tags if tag == "a" and a.get("href", "/") != "/"]
    links = [href for href in hrefs if href.startswith("/")]
    links += [a["action"] for tag, a in tags if tag == "form" and a.get("action")]
    assert links
    assert [link for link in links if not link.startswith("/shop/")] == []


@pytest.mark.usefixtures("mail")
def test_a_release_under_a_script_name(client: Client) -> None:
    with below_shop():
        response = client.get(LIST + "release/", {"name": "mail", "_changelist_filters": "q=a"})
        action, data = Page(response).confirmation()
        response = client.post(action.removeprefix("/shop"), {**data, "reason": "x"})
    assert response["Location"] == f"/shop{LIST}?q=a"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/St_Johns"])
def test_any_time_zone(client: Client, hold: Hold, page: str, use_tz: bool, zone: str) -> None:
    hold("mail")
    with override_settings(USE_TZ=use_tz, TIME_ZONE=zone):
        response = client.get(LIST + page)
        expires = inventory.get("mail").holder.expires_at.astimezone(get_default_timezone())
    assert response.status_code == 200
    if page in ("", "mail/change/"):
        # The second may pass between the two reads of the clock.
        assert expires.isoformat(" ", "minutes")[:16] in response.content.decode()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("language", ["de", "ar", "zh-hans", "tr"])
def test_any_language(client: Client, hold: Hold, page: str, language: str) -> None:
    lease = hold("mail")
    with override(None), override_settings(USE_THOUSAND_SEPARATOR=True):
        response = client.get(LIST + page, headers={"accept-language": language})
    assert response.status_code == 200
    assert response.headers["Content-Language"] == language
    if "history" not in page and "?o" not in page:
        assert str(lease.fence) in response.content.decode()


def test_the_history_is_the_same_in_every_language(client: Client, mail: None) -> None:
    from django.contrib.admin.models import LogEntry

    action, data = ask(client, "mail")
    client.post(action, {**data, "reason": "x"}, headers={"accept-language": "de"})
    assert LogEntry.objects.get().change_message.startswith("Released the lease")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("mail")
def test_a_strict_content_security_policy_finds_nothing_inline(client: Client, page: str) -> None:
    tags = Page(client.get(LIST + page)).tags
    for tag, attrs in tags:
        assert "style" not in attrs
        assert [name for name in attrs if name.startswith("on")] == []
        assert not attrs.get("href", "").startswith(("javascript:", "data:"))
        assert tag != "style"
        if tag == "script":
            assert attrs.get("src") or attrs.get("type") == "application/json"
    sheets = [attrs["href"] for tag, attrs in tags if tag == "link"]
    assert settings.STATIC_URL + "django_latch/admin.css" in sheets


def test_the_style_sheet_has_no_colour_of_its_own() -> None:
    path = finders.find("django_latch/admin.css")
    assert isinstance(path, str)
    sheet = Path(path).read_text(encoding="utf-8")
    assert not re.search(r"#[0-9a-f]{3,8}\b(?=[^{]*;)|rgb|hsl|url\(|@import", sheet)
    colours = re.findall(r"(?:color|background|border[a-z-]*):([^;]+);", sheet)
    assert colours
    assert [colour for colour in colours if "var(--" not in colour] == []


@pytest.mark.usefixtures("mail")
def test_a_list_in_a_popup(client: Client) -> None:
    assert names_of(client.get(LIST, {"_popup": "1"})) == ["mail"]
