"""Who may do what: deny by default, scopes, rights, revocation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from django_latch.api.accounts import Account
from tests.api.conftest import Api
from tests.api.server import Server, manage

Connect = Callable[..., Api]


@pytest.fixture(scope="session")
def scoped(server: Server, folder: Path, connect: Connect) -> Api:
    """An account that may touch `sync` only, and may not force."""
    return connect(server, manage(folder, "latch_token", "create", "narrow", "--scope", "sync"))


@pytest.mark.parametrize(
    ("scope", "key", "covered"),
    [
        ("sync", "sync", True),
        ("sync", "sync:42", True),
        ("sync", "synced", False),
        ("sync", "SYNC", False),
        ("sync:4", "sync:42", False),
        ("sync:42", "sync", False),
        ("*", "anything", True),
    ],
)
def test_scopes_match_whole_segments(scope: str, key: str, covered: bool) -> None:
    assert Account("a", (scope,), frozenset()).covers(key) is covered


def test_a_token_serves_one_account_and_one_key() -> None:
    one, other = (Account(name, ("*",), frozenset()) for name in ("a", "b"))
    assert len({one.stored("k", "t"), one.stored("l", "t"), other.stored("k", "t")}) == 3


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "x"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "latch"),
        ("GET", "latch/a"),
        ("POST", "latch/a"),
        ("DELETE", "latch/a"),
        ("POST", "latch/a/release"),
        ("GET", "latch/a/queue"),
        ("GET", "latch/a/b"),
        ("GET", "openapi.json"),
    ],
)
def test_nothing_is_open(
    server: Server, connect: Connect, headers: dict[str, str], method: str, path: str
) -> None:
    answer = connect(server, "").http.request(method, f"/v1/{path}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_scopes_are_enforced_everywhere(api: Api, scoped: Api, secret: str) -> None:
    api.take("synced:1", token=secret)
    api.take("sync:1")
    for method, path in (
        ("GET", "synced:1"),
        ("POST", "synced:1"),
        ("POST", "synced:1/release"),
        ("GET", "synced:1/queue"),
    ):
        answer = scoped.http.request(method, f"/v1/latch/{path}", json={"token": secret})
        assert (answer.status_code, answer.json()["code"]) == (403, "out_of_scope"), path
    listed = scoped.http.get("/v1/latch").json()["locks"]
    assert [lock["key"] for lock in listed] == ["sync:1"]
    assert scoped.look("sync:1")["locked"] is True


def test_another_accounts_token_holds_nothing(api: Api, scoped: Api, secret: str) -> None:
    api.take("sync:2", token=secret)
    assert scoped.release("sync:2", secret).status_code == 403
    assert scoped.acquire("sync:2", token=secret).status_code == 408
    assert api.look("sync:2")["locked"] is True


def test_force_needs_its_right(api: Api, scoped: Api) -> None:
    api.take("sync:3")
    body = {"force": True, "reason": "mine now"}
    answer = scoped.http.post("/v1/latch/sync:3/release", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert api.look("sync:3")["locked"] is True


def test_a_reader_only_reads(server: Server, folder: Path, connect: Connect) -> None:
    made = manage(folder, "latch_token", "create", "reader", "--scope", "*", "--read-only")
    reader = connect(server, made)
    assert reader.look("x")["locked"] is False
    assert reader.acquire("x").json()["code"] == "forbidden"


def test_only_the_digest_is_kept(folder: Path, token: str) -> None:
    assert token.encode() not in (folder / "db.sqlite3").read_bytes()
    assert token not in manage(folder, "latch_token", "list", "--format", "json")


@override_settings(ROOT_URLCONF="tests.api.urls")
def test_a_check_finds_the_api_without_authenticators() -> None:
    ids = [found.id for found in run_checks()]
    assert "django_latch.W003" in ids
    http = {"AUTHENTICATORS": ["django_latch.api.auth.bearer"]}
    with override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks", "HTTP": http}):
        assert "django_latch.W003" not in [found.id for found in run_checks()]
    http = {"AUTHENTICATORS": ["django_latch.api.auth.nobody"]}
    with override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks", "HTTP": http}):
        assert "django_latch.E004" in [found.id for found in run_checks()]


def test_no_authenticator_opens_nothing(client: object) -> None:
    from django.test import Client

    with override_settings(ROOT_URLCONF="tests.api.urls"):
        answer = Client().get("/v1/latch/x", headers={"Authorization": "Bearer x"})
    assert answer.status_code == 401
