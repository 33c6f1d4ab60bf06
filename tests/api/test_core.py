"""The requirements that need no waiting: a quick core, on one server process."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

import pytest

from django_latch import inventory
from tests.api.conftest import Api
from tests.api.server import Server
from tests.integration.until import until


def test_acquire_inspect_release(api: Api, key: str) -> None:
    taken = api.take(key, ttl=5, owner="build 17", meta={"commit": "abc"})
    assert set(taken) == {
        "key",
        "token",
        "fence",
        "ttl",
        "expires_at",
        "acquired_at",
        "waited",
        "renewed",
    }
    assert (taken["key"], taken["ttl"], taken["renewed"]) == (key, 5.0, False)
    seen = api.look(key)
    assert (seen["locked"], seen["owner"], seen["fence"]) == (
        True,
        "tests/build 17",
        taken["fence"],
    )
    assert 3 < seen["ttl_remaining"] <= 5
    assert seen["holders"][0]["meta"] == {"commit": "abc"}
    assert taken["token"] not in str(seen)
    released = api.release(key, taken["token"])
    assert released.json()["released"] is True
    assert released.headers["Cache-Control"] == "no-store"
    assert api.look(key)["locked"] is False


def test_the_end_that_is_told_comes_a_little_before_the_real_one(api: Api, key: str) -> None:
    taken = api.take(key, ttl=100)
    renewed = api.take(key, ttl=100, token=taken["token"], timeout=0)
    assert (taken["renewed"], renewed["renewed"]) == (False, True)
    for told in (taken, renewed):
        left = (datetime.fromisoformat(told["expires_at"]) - datetime.now(UTC)).total_seconds()
        assert 99 - 5 < left <= 99


def test_l1_l2_the_holder_keeps_it_and_the_waiter_is_told(api: Api, key: str) -> None:
    api.take(key, ttl=30)
    answer = api.acquire(key, timeout=1)
    assert answer.status_code == 408
    assert 1.0 <= answer.elapsed.total_seconds() < 3.0
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (problem["code"], problem["position"], problem["resumable"]) == ("timeout", 1, False)
    assert problem["ttl_remaining"] > 25
    assert problem["holder_alive"] is True
    assert int(answer.headers["Retry-After"]) >= 1
    assert "token" not in problem


def test_a_try_is_busy_at_once(api: Api, key: str) -> None:
    api.take(key)
    answer = api.acquire(key, timeout=0)
    assert (answer.status_code, answer.json()["code"]) == (408, "busy")
    assert answer.elapsed.total_seconds() < 2.0


def test_l8_l11_a_wrong_token_releases_nothing(api: Api, key: str) -> None:
    token = api.take(key, ttl=20, token="Aa" * 16)["token"]
    before = api.look(key)
    for wrong in ("x" * 32, token[:-1], token.swapcase(), token + " ", " " + token, "é"):
        answer = api.release(key, wrong)
        assert (answer.status_code, answer.json()["reason"]) == (403, "never_held"), wrong
    header = api.http.delete(f"/v1/latch/{key}", headers={"Latch-Token": token[:-1]})
    assert header.status_code == 403
    after = api.look(key)
    assert after["fence"] == before["fence"]
    assert before["ttl_remaining"] - 5 < after["ttl_remaining"] <= before["ttl_remaining"]
    assert api.release(key, token).status_code == 200


def test_l9_l14_l15_the_reason_is_right_in_each_case(api: Api, key: str) -> None:
    old = api.take(key, ttl=0.3)["token"]
    until(lambda: not api.look(key)["locked"])
    expired = api.release(key, old)
    assert (expired.status_code, expired.json()["reason"]) == (403, "expired")
    new = api.take(key, ttl=20)
    taken = api.release(key, old)
    assert (taken.status_code, taken.json()["reason"]) == (403, "taken")
    never = api.release(key, "n" * 32)
    assert (never.status_code, never.json()["reason"]) == (403, "never_held")
    assert api.look(key)["fence"] == new["fence"]
    free = api.release(f"{key}:other", "n" * 32)
    assert (free.status_code, free.json()["code"]) == (404, "not_found")
    again = api.release(f"{key}:other", "n" * 32)
    assert again.status_code == 404, "a wrong release must leave nothing behind"


def test_l16_a_second_release_replays_and_frees_nobody_else(api: Api, key: str) -> None:
    token = api.take(key)["token"]
    first = api.release(key, token).json()
    new = api.take(key)
    assert api.release(key, token).json() == first
    assert api.look(key)["fence"] == new["fence"]


def test_l33_a_lost_reply_is_asked_for_again(api: Api, key: str, secret: str) -> None:
    first = api.take(key, token=secret)
    again = api.take(key, token=secret, timeout=5)
    assert (again["token"], again["fence"]) == (secret, first["fence"])
    assert (first["renewed"], again["renewed"]) == (False, True)
    assert again["acquired_at"] == first["acquired_at"]


def test_l24_l25_ten_refreshes_keep_the_lock(api: Api, key: str, secret: str) -> None:
    first = api.take(key, token=secret, ttl=1)
    for _ in range(10):
        until(lambda: api.look(key)["ttl_remaining"] < 0.8)
        assert api.acquire(key).status_code == 408
        again = api.take(key, token=secret, ttl=1)
        assert (again["fence"], again["renewed"]) == (first["fence"], True)
        assert api.look(key)["ttl_remaining"] > 0.8
    assert inventory.get(key).holders[0].held_for > 2  # type: ignore[union-attr]


def test_a_renewal_never_grants(api: Api, key: str, secret: str) -> None:
    refused = api.acquire(key, token=secret, renew=True)
    assert (refused.status_code, refused.json()["reason"]) == (403, "never_held")
    assert api.look(key)["locked"] is False
    api.take(key, token=secret, ttl=0.3)
    until(lambda: not api.look(key)["locked"])
    for renew in (True, False):
        refused = api.acquire(key, token=secret, renew=renew)
        assert (refused.status_code, refused.json()["reason"]) == (403, "expired")


def test_l17_l23_a_ttl_that_is_too_short_is_told(api: Api, key: str, server: Server) -> None:
    for _ in range(2):
        token = api.take(key, ttl=1)["token"]
        until(lambda: api.look(key)["ttl_remaining"] < 0.4)
        advice = api.release(key, token).json()["advice"]
        assert "ask for a ttl of 2 s" in advice
    assert "2 times" in advice
    assert server.log.read_text().count(f"{key}'") == 1, "warned about once"
    token = api.take(key, ttl=1)["token"]
    api.take(key, ttl=1, token=token)
    assert "advice" not in api.release(key, token).json()


def test_force_is_refused_without_a_reason_and_told_to_the_holder(
    api: Api, key: str, secret: str
) -> None:
    api.take(key, token=secret)
    url = f"/v1/latch/{key}/release"
    assert api.http.post(url, json={"force": True}).status_code == 400
    freed = api.http.post(url, json={"force": True, "reason": "stuck"})
    assert freed.json()["released"] is True
    assert api.look(key)["locked"] is False
    renewal = api.acquire(key, token=secret, renew=True)
    assert (renewal.status_code, renewal.json()["reason"]) == (403, "revoked")
    assert api.http.post(url, json={"force": True, "reason": "x"}).status_code == 404


def test_list_goes_page_by_page(api: Api, key: str) -> None:
    for number in range(5):
        api.take(f"{key}:{number}")
    api.take("other")
    page = api.http.get("/v1/latch", params={"prefix": key}).json()
    assert sorted(lock["key"] for lock in page["locks"]) == [f"{key}:{n}" for n in range(5)]
    assert page["cursor"] is None


def test_permits(api: Api, key: str) -> None:
    fences = [api.take(key, limit=2)["fence"] for _ in range(2)]
    assert api.acquire(key, limit=2).status_code == 408
    seen = api.look(key)
    assert [holder["fence"] for holder in seen["holders"]] == fences
    assert seen["limit"] == 2


BAD: list[tuple[bytes, str]] = [
    (b"{", ""),
    (b"[1]", ""),
    (b'{"ttl": NaN}', ""),
    (b'{"ttl": 1e999}', ""),
    (b'{"ttl": 1, "ttl": 2}', ""),
    (b"\xff\xfe", ""),
    (b"[" * 9000, ""),
    (b'{"ttl": "5"}', "/ttl"),
    (b'{"ttl": true}', "/ttl"),
    (b'{"ttl": 0}', "/ttl"),
    (b'{"ttl": -1}', "/ttl"),
    (b'{"ttl": ' + b"9" * 400 + b"}", "/ttl"),
    (b'{"ttl": 86401}', "/ttl"),
    (b'{"timeout": -0.1}', "/timeout"),
    (b'{"timeout": 3601}', "/timeout"),
    (b'{"timeout": null}', "/timeout"),
    (b'{"limit": 0}', "/limit"),
    (b'{"limit": 1.5}', "/limit"),
    (b'{"renew": 1}', "/renew"),
    (b'{"renew": true}', "/token"),
    (b'{"token": "short"}', "/token"),
    (b'{"token": {}}', "/token"),
    (b'{"owner": 5}', "/owner"),
    (b'{"owner": "' + b"x" * 300 + b'"}', "/owner"),
    (b'{"owner": "\\ud800"}', "/owner"),
    (b'{"meta": []}', "/meta"),
    (b'{"meta": {"a": "' + b"x" * 5000 + b'"}}', "/meta"),
    (b'{"meta": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}", "/meta"),
    (b'{"wait": 5}', "/wait"),
]


@pytest.mark.parametrize(("body", "pointer"), BAD)
def test_l34_bad_bodies_point_to_the_field(api: Api, key: str, body: bytes, pointer: str) -> None:
    answer = api.http.post(f"/v1/latch/{key}", content=body)
    assert answer.status_code == 400, answer.text
    problem = answer.json()
    assert problem["code"] == "invalid_request"
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert api.look(key)["locked"] is False


@pytest.mark.parametrize("size", [17_000, 1_000_000])
def test_l34_large_bodies(api: Api, key: str, size: int) -> None:
    answer = api.http.post(f"/v1/latch/{key}", content=b" " * size)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "path",
    [
        "a/b",
        "a%2Fb",
        "a%2frelease",
        "a%7Bb",
        "%7Ba%7D",
        "a" * 2000,
        "%00",
        "a%0Ab",
        "%ff",
        "",
        "a/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_l34_bad_keys(api: Api, path: str, method: str) -> None:
    answer = api.http.request(method, f"/v1/latch/{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_key")


@pytest.mark.parametrize("name", ["é", "鍵", "a b", "a%b", "a?b#c", "🔒", "x" * 255, "a+b&c=d"])
def test_l34_odd_keys_that_are_keys(api: Api, name: str) -> None:
    from urllib.parse import quote

    assert api.take(quote(name, safe=""))["key"] == name
    assert inventory.get(name) is not None


def test_an_encoded_slash_is_no_release(api: Api, secret: str) -> None:
    api.take("a", token=secret)
    answer = api.http.post("/v1/latch/a%2Frelease", json={"token": secret})
    assert answer.status_code == 400
    assert api.look("a")["locked"] is True


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("PUT", "x", "GET, POST, DELETE, HEAD"), ("GET", "x/release", "POST")],
)
def test_other_methods(api: Api, method: str, path: str, allow: str) -> None:
    answer = api.http.request(method, f"/v1/latch/{path}")
    assert (answer.status_code, answer.headers["Allow"]) == (405, allow)
    assert answer.json()["code"] == "method_not_allowed"


def test_a_delete_needs_the_header(api: Api, key: str) -> None:
    token = api.take(key)["token"]
    assert api.http.delete(f"/v1/latch/{key}").status_code == 400
    done = api.http.delete(f"/v1/latch/{key}", headers={"Latch-Token": token})
    assert done.status_code == 200


def test_no_secret_is_in_the_log(api: Api, key: str, server: Server, token: str) -> None:
    secret = secrets.token_hex(16)
    answers: list[Any] = [api.take(key, token=secret), api.release(key, secret[:-1])]
    assert answers
    text = server.log.read_text()
    assert f"/v1/latch/{key}" in text, "the access log is on"
    assert secret not in text
    assert token not in text
