"""API tokens: the command, the admin, and Django's own login."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client, override_settings

from django_latch.api.lookups import account_of
from django_latch.models import ApiToken

LOGIN = {
    "CACHE_ALIAS": "locks",
    "HTTP": {"AUTHENTICATORS": ["django_latch.api.auth.login"]},
}

pytestmark = pytest.mark.django_db


def create(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    call_command("latch_token", "create", *args)
    return capsys.readouterr().out.strip()


def test_create_list_revoke(capsys: pytest.CaptureFixture[str]) -> None:
    secret = create(capsys, "ci", "--scope", "sync", "--scope", "deploy:prod", "--force")
    token = ApiToken.objects.get()
    assert secret.startswith("latch_")
    assert token.digest == ApiToken.digest_of(secret)
    assert secret not in str(vars(token))
    call_command("latch_token", "list", "--format", "json")
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["scopes"] == ["sync", "deploy:prod"]
    assert secret not in str(listed)
    call_command("latch_token", "revoke", str(token.pk))
    token.refresh_from_db()
    assert token.revoked_at is not None
    call_command("latch_token", "list")
    assert "deploy:prod" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ("create", "ci"),
        ("create", "c/i", "--scope", "a"),
        ("create", "ci", "--scope", "a:"),
        ("create", "ci", "--scope", "a*"),
        ("create", "ci", "--scope", "{a}"),
        ("create", "ci", "--scope", "a\x01"),
        ("create",),
        ("revoke", "7"),
        ("revoke", "x"),
    ],
)
def test_what_is_refused(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command("latch_token", *args)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("create",), 2, "create needs the account; see --help"),
        (("revoke",), 2, "revoke needs the id of a token; see --help"),
        (("create", "ci"), 2, "create needs --scope; * is every key"),
        (("create", "c/i", "--scope", "a"), 1, "account: Enter a valid value."),
        (("create", "ci", "--scope", "a:"), 1, "scopes: “a:” is no scope"),
        (("revoke", "7"), 3, "There is no token '7'."),
    ],
)
def test_a_refusal_says_what_and_has_its_exit_code(
    args: tuple[str, ...], code: int, told: str
) -> None:
    with pytest.raises(CommandError, match="^" + re.escape(told)) as refused:
        call_command("latch_token", *args)
    assert refused.value.returncode == code


def test_the_scopes_of_the_admin_are_listed_as_those_of_the_command(
    admin_client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"account": "ci", "scopes": "sync\r\ndeploy"}
    admin_client.post("/admin/django_latch/apitoken/add/", data)
    call_command("latch_token", "list", "--format", "json")
    assert json.loads(capsys.readouterr().out)[0]["scopes"] == ["sync", "deploy"]


@pytest.mark.parametrize("allowed", [True, False])
def test_the_right_to_force_is_given_by_those_who_have_it(allowed: bool) -> None:
    rights = ["add_apitoken", *(["view_activelock", "release_activelock"] if allowed else [])]
    client = signed_in(*rights, staff=True)
    data = {"account": "ci", "scopes": "*", "may_force": "on"}
    client.post("/admin/django_latch/apitoken/add/", data)
    assert ApiToken.objects.get().may_force is allowed


@pytest.mark.django_db(transaction=True)
def test_a_revocation_is_noticed_when_the_look_up_is_old(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from asgiref.sync import sync_to_async
    from django.db import connections

    from django_latch.api import lookups

    secret = create(capsys, "ci", "--scope", "*")
    assert asyncio.run(account_of(secret)) is not None
    ApiToken.objects.get().revoke()
    assert asyncio.run(account_of(secret)) is not None, "remembered"
    later = lookups.now() + 10.1
    monkeypatch.setattr(lookups, "now", lambda: later)
    assert asyncio.run(account_of(secret)) is None
    # A server drops no database while the thread that looked is connected to it.
    asyncio.run(sync_to_async(connections.close_all)())


def test_the_admin_shows_a_secret_once(admin_client: Client) -> None:
    data = {"account": "ci", "scopes": "sync\r\ndeploy"}
    answer = admin_client.post("/admin/django_latch/apitoken/add/", data, follow=True)
    token = ApiToken.objects.get()
    text = answer.content.decode()
    secret = text.split("<code>")[1].split("</code>")[0]
    assert ApiToken.digest_of(secret) == token.digest
    for url in ("", f"{token.pk}/change/"):
        page = admin_client.get(f"/admin/django_latch/apitoken/{url}").content.decode()
        assert secret not in page
        assert token.digest not in page
    assert admin_client.post(f"/admin/django_latch/apitoken/{token.pk}/delete/").status_code == 403
    action = {"action": "revoke_selected", "_selected_action": [token.pk]}
    admin_client.post("/admin/django_latch/apitoken/", action)
    token.refresh_from_db()
    assert token.revoked_at is not None


def signed_in(*codenames: str, staff: bool = False, **options: bool) -> Client:
    user = User.objects.create_user("anna", is_staff=staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client(**options)
    client.force_login(user)
    return client


@override_settings(ROOT_URLCONF="tests.api.urls", DJANGO_LATCH=LOGIN)
@pytest.mark.django_db(transaction=True)
def test_a_login_needs_permissions_and_csrf() -> None:
    client = signed_in("view_activelock")
    assert client.get("/v1/latch/x").json()["locked"] is False
    refused = client.post("/v1/latch/x", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    User.objects.all().delete()
    client = signed_in("view_activelock", "release_activelock", enforce_csrf_checks=True)
    refused = client.post("/v1/latch/x", {}, content_type="application/json")
    assert refused.status_code == 403
    assert client.get("/v1/latch/x").json()["locked"] is False
    User.objects.all().delete()
    client = signed_in("release_activelock")  # as in the admin: alone it allows nothing
    refused = client.post("/v1/latch/x", {"timeout": 0}, content_type="application/json")
    assert refused.status_code == 403
    User.objects.all().delete()
    client = signed_in("view_activelock", "release_activelock")
    taken = client.post("/v1/latch/x", {"timeout": 0}, content_type="application/json")
    assert taken.status_code == 200


@override_settings(ROOT_URLCONF="tests.api.urls", DJANGO_LATCH=LOGIN)
@pytest.mark.django_db(transaction=True)
def test_nobody_is_refused() -> None:
    assert Client().get("/v1/latch/x").status_code == 401
    assert signed_in().get("/v1/latch/x").status_code == 403


@override_settings(ROOT_URLCONF="tests.api.urls", DJANGO_LATCH=LOGIN)
@pytest.mark.django_db(transaction=True)
def test_a_form_is_no_failure_of_the_server() -> None:
    client = signed_in("view_activelock", "release_activelock", enforce_csrf_checks=True)
    client.get("/admin/login/")
    token = client.cookies["csrftoken"].value
    answer = client.post("/v1/latch/form", {"ttl": "5"}, headers={"X-CSRFToken": token})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "the body is a form, and must be JSON"
