"""Who may open what: every role against every URL and every action."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from django_latch import inventory
from tests.admin.pages import LIST, ROLES
from tests.holding import Hold

SEES = {"superuser", "view-only", "view and release"}
FREES = {"superuser", "view and release"}
NOBODY: set[str] = set()

#: A request, who may make it, and what they get. Others are refused; the anonymous must log in.
REQUESTS = {
    "list": ("GET", "", {}, SEES, 200),
    "search": ("GET", "?q=mail", {}, SEES, 200),
    "detail": ("GET", "mail/change/", {}, SEES, 200),
    "history": ("GET", "mail/history/", {}, SEES, 200),
    "old link": ("GET", "mail/", {}, SEES | {"release-only", "staff without permission"}, 302),
    "snapshots": ("GET", "snapshots/", {}, SEES, 200),
    "confirmation": ("GET", "release/?name=mail", {}, FREES, 200),
    "add": ("GET", "add/", {}, NOBODY, 200),
    "delete": ("GET", "mail/delete/", {}, NOBODY, 200),
    "post add": ("POST", "add/", {"name": "x"}, NOBODY, 302),
    "post change": ("POST", "mail/change/", {"name": "x"}, NOBODY, 302),
    "post delete": ("POST", "mail/delete/", {"post": "yes"}, NOBODY, 302),
    "release": ("POST", "release/", {"lease": "LEASE", "reason": "stuck"}, FREES, 302),
    "release without a reason": ("POST", "release/", {"lease": "LEASE"}, FREES, 200),
    "release action": (
        "POST",
        "",
        {"action": "release_selected", "_selected_action": "mail", "index": "0"},
        FREES,
        200,
    ),
    "delete action": (
        "POST",
        "",
        {"action": "delete_selected", "_selected_action": "mail", "index": "0", "post": "yes"},
        NOBODY,
        302,
    ),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("request_name", REQUESTS)
def test_matrix(
    client_of: Callable[[str], Client], hold: Hold, role: str, request_name: str
) -> None:
    lease = hold("mail")
    method, url, data, allowed, status = REQUESTS[request_name]
    fields = {
        name: value.replace("LEASE", f"{lease.fence}:{lease.fingerprint}:mail")
        for name, value in data.items()
    }
    client = client_of(role)
    response = client.get(LIST + url) if method == "GET" else client.post(LIST + url, fields)
    freed = inventory.get("mail") is None
    assert freed is (request_name == "release" and role in FREES)
    if role in allowed:
        assert response.status_code == status
    elif role == "anonymous":
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/?next=")
    elif request_name in ("release action", "delete action") and role in SEES:
        # Django knows no such action for this user: the list again, or a way back to it.
        assert response.status_code in (200, 302)
        assert b"latch-confirmation" not in response.content
    else:
        assert response.status_code == 403


@pytest.mark.parametrize("role", ROLES)
def test_the_index_and_the_buttons_show_what_one_may_do(
    client_of: Callable[[str], Client], hold: Hold, role: str
) -> None:
    hold("mail")
    client = client_of(role)
    if role in SEES:
        assert LIST in client.get("/admin/").content.decode()
        detail = client.get(LIST + "mail/change/").content.decode()
        assert ("latch-release" in detail) is (role in FREES)
        listed = client.get(LIST).content.decode()
        assert ("release_selected" in listed) is (role in FREES)
        assert "delete_selected" not in listed
        assert LIST + "add/" not in listed
    else:
        assert LIST not in client.get("/admin/").content.decode()


def test_a_release_needs_its_csrf_token(client_of: Callable[[str], Client], hold: Hold) -> None:
    lease = hold("mail")
    client = client_of("superuser")
    client.handler.enforce_csrf_checks = True
    data = {"lease": f"{lease.fence}:{lease.fingerprint}:mail", "reason": "x"}
    assert client.post(LIST + "release/", data).status_code == 403
    assert inventory.get("mail") is not None


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options"])
def test_other_methods_do_nothing(client: Client, hold: Hold, method: str) -> None:
    hold("mail")
    assert getattr(client, method)(LIST + "release/?name=mail").status_code == 405
    assert inventory.get("mail") is not None
