"""The requirements that take their time: waiting, crashes, full queues, deadlocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import redis

from django_latch import inventory
from tests.api.conftest import Answer, Api
from tests.api.server import Server, manage, serving
from tests.integration.until import until

pytestmark = pytest.mark.api

Later = Callable[..., "Future[Answer]"]
Connect = Callable[..., Api]

#: Everything small, so that limits are met soon.
SMALL = {
    "TIMEOUT": 1,
    "MAX_WAITERS": 3,
    "DEADLOCKS": True,
    "HTTP": {"MAX_WAIT": 1, "MAX_LOCKS": 4, "MAX_WAITS": 2},
}


@pytest.fixture
def later() -> Iterator[Later]:
    """Run a call in a thread."""
    with ThreadPoolExecutor(20) as pool:
        yield pool.submit


@pytest.fixture(scope="module")
def small(folder: Path, connect: Connect) -> Iterator[Api]:
    with serving(folder, **SMALL) as running:
        yield connect(running)


def waiters(key: str) -> int:
    lock = inventory.get(key)
    return lock.waiters if lock else 0


def test_l3_contention_is_told_from_a_slow_holder(api: Api, key: str, later: Later) -> None:
    api.take(key, ttl=30)
    first = later(api.acquire, key, timeout=3)
    until(lambda: waiters(key) == 1)
    second = api.acquire(key, timeout=1).json()
    assert (second["code"], second["position"]) == ("timeout", 2)
    assert first.result().json()["position"] == 1


def test_l4_granted_when_the_holder_releases(api: Api, key: str, later: Later) -> None:
    token = api.take(key, ttl=30)["token"]
    begun = time.monotonic()
    waiting = later(api.acquire, key, timeout=5)
    until(lambda: waiters(key) == 1)
    until(lambda: time.monotonic() - begun >= 2)
    api.release(key, token)
    answer = waiting.result()
    assert answer.status_code == 200
    assert 1.9 <= answer.json()["waited"] < 4
    assert answer.json()["renewed"] is False


def test_l5_the_ttl_falls_and_agrees_with_the_store(api: Api, key: str) -> None:
    api.take(key, ttl=2)
    seen = []
    while (look := api.look(key))["locked"]:
        info = inventory.get(key)
        if info is not None and info.holder is not None:
            assert abs(look["ttl_remaining"] - info.holder.expires_in) < 0.5
        seen.append(look["ttl_remaining"])
    assert len(seen) > 10
    assert seen == sorted(seen, reverse=True)


def test_l6_l7_l10_a_crashed_holder_costs_its_ttl(
    api: Api, key: str, raw: redis.Redis, server: Server
) -> None:
    logged = server.log.stat().st_size
    api.take(key, ttl=1.5, owner="crashed")
    answer = api.acquire(key, ttl=1, timeout=10)
    assert answer.status_code == 200
    assert 1.3 <= answer.json()["waited"] < 3.5
    until(lambda: not api.look(key)["locked"])
    events = [event for _, event in raw.xrange("latch:1:{00}:events")]
    expired = [event for event in events if event["kind"] == "expired" and event["name"] == key]
    assert expired
    assert "tests/crashed" in expired[0]["owner"]
    assert "ERROR" not in server.log.read_text()[logged:]


def test_l22_work_longer_than_the_ttl(api: Api, key: str, later: Later) -> None:
    late = api.take(key, ttl=1)
    answer = api.acquire(key, timeout=5)
    assert 0.9 <= answer.json()["waited"] < 3
    refused = api.release(key, late["token"])
    assert (refused.status_code, refused.json()["reason"]) == (403, "taken")
    assert "ttl" in refused.json()["advice"]


def test_l18_l19_the_hundred_and_first_waiter(api: Api, key: str) -> None:
    api.take(key, ttl=30)

    async def crowd() -> None:
        limits = httpx.Limits(max_connections=None)
        headers = api.http.headers
        url = f"{api.http.base_url}/v1/latch/{key}"
        async with httpx.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
            body = {"ttl": 5, "timeout": 20}
            asking = [asyncio.create_task(client.post(url, json=body)) for _ in range(100)]
            await asyncio.to_thread(until, lambda: waiters(key) == 100, 20)
            full = await client.post(url, json=body)
            assert (full.status_code, full.json()["code"]) == (429, "queue_full")
            assert full.elapsed.total_seconds() < 2
            assert "RateLimit" not in full.headers
            assert full.json()["waiters"] == 100
            one_try = await client.post(url, json={"timeout": 0})
            assert one_try.json()["code"] == "busy"
            other = await client.post(url + ":other", json=body)
            assert other.status_code == 200, "other keys are free"
            queue = (await client.get(url + "/queue")).json()["queue"]
            assert [place["position"] for place in queue] == list(range(1, 101))
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    asyncio.run(crowd())
    until(lambda: waiters(key) == 0)


def test_l21_time_outs_and_goners_leave_no_trace(api: Api, key: str, later: Later) -> None:
    token = api.take(key, ttl=30)["token"]
    waiting = [later(api.acquire, key, timeout=1) for _ in range(5)]
    until(lambda: waiters(key) == 5)
    assert {answer.result().status_code for answer in waiting} == {408}
    until(lambda: waiters(key) == 0)
    with pytest.raises(httpx.ReadTimeout):
        api.http.post(f"/v1/latch/{key}", json={"ttl": 30, "timeout": 20}, timeout=0.7)
    until(lambda: waiters(key) == 0)
    api.release(key, token)
    assert api.look(key)["locked"] is False, "no orphan grant"


def test_a_broken_connection_keeps_the_place_for_the_token(
    api: Api, key: str, secret: str, later: Later
) -> None:
    holder = api.take(key, ttl=30)["token"]
    body = {"ttl": 5, "timeout": 20, "token": secret}
    with pytest.raises(httpx.ReadTimeout):
        api.http.post(f"/v1/latch/{key}", json=body, timeout=0.7)
    until(lambda: waiters(key) == 0)
    behind = later(api.acquire, key, timeout=20)
    until(lambda: waiters(key) == 1)
    again = later(api.acquire, key, timeout=20, token=secret)
    until(lambda: waiters(key) == 2)
    api.release(key, holder)
    assert again.result().json()["token"] == secret
    assert not behind.done(), "whoever came later waits on"
    api.release(key, secret)
    assert behind.result().status_code == 200


def test_l26_two_that_wait_for_each_other(api: Api, key: str, later: Later) -> None:
    x, y = f"{key}:x", f"{key}:y"
    api.take(x, ttl=30, owner="A")
    api.take(y, ttl=30, owner="B")
    answers = [
        later(api.acquire, y, timeout=2, owner="A"),
        later(api.acquire, x, timeout=2, owner="B"),
    ]
    assert [answer.result().status_code for answer in answers] == [408, 408]


def test_l26_the_search_for_deadlocks(folder: Path, connect: Connect, later: Later) -> None:
    with serving(folder, DEADLOCKS=True) as running:
        api = connect(running)
        api.take("x", ttl=30, owner="A")
        api.take("y", ttl=30, owner="B")
        answers = [
            later(api.acquire, "y", timeout=20, owner="A"),
            later(api.acquire, "x", timeout=15, owner="B"),
        ]
        loser = answers[1].result()
        assert (loser.status_code, loser.json()["code"]) == (409, "deadlock")
        assert {link["holds"] for link in loser.json()["cycle"]} == {"x", "y"}
        api.http.post("/v1/latch/y/release", json={"force": True, "reason": "B gave up"})
        assert answers[0].result().status_code == 200


def test_l29_a_missing_timeout_takes_a_default(small: Api, key: str) -> None:
    small.take(key, ttl=30)
    answer = small.http.post(f"/v1/latch/{key}", json={})
    assert answer.json()["code"] == "timeout"
    assert 1.0 <= answer.elapsed.total_seconds() < 3
    assert answer.json()["resumable"] is False


def test_a_long_wait_is_resumed_in_its_place(
    small: Api, key: str, secret: str, later: Later
) -> None:
    token = small.take(key, ttl=30)["token"]
    capped = small.acquire(key, timeout=20)
    problem = capped.json()
    assert capped.status_code == 408
    assert 1.0 <= capped.elapsed.total_seconds() < 3
    assert (problem["resumable"], problem["position"]) == (True, 1)
    behind = later(small.acquire, key, timeout=1, ttl=1)
    until(lambda: waiters(key) == 2)
    resumed = later(small.acquire, key, timeout=20, token=problem["token"])
    assert behind.result().json()["position"] == 2
    assert resumed.result().json()["position"] == 1
    # Nobody keeps it alive now; the place is remembered all the same.
    until(lambda: small.acquire(key).status_code == 408 and waiters(key) == 0, 8)
    again = later(small.acquire, key, timeout=20, token=problem["token"])
    until(lambda: waiters(key) == 1)
    small.release(key, token)
    assert again.result().json()["token"] == problem["token"]


def test_the_accounts_own_limits(small: Api, key: str, later: Later) -> None:
    tokens = {n: small.take(f"{key}:{n}", ttl=30)["token"] for n in range(4)}
    over = small.acquire(f"{key}:4")
    assert (over.status_code, over.json()["code"]) == (429, "too_many_locks")
    assert over.headers["RateLimit-Policy"] == '"locks";q=4'
    assert int(over.headers["Retry-After"]) >= 1
    small.take(f"{key}:0", ttl=30, token=tokens[0])  # a renewal is no further lock
    small.release(f"{key}:0", tokens[0])
    small.take(f"{key}:4", ttl=1)
    until(lambda: not small.look(f"{key}:4")["locked"])
    small.take(f"{key}:5", ttl=30)


def test_the_accounts_waits(
    small: Api, api: Api, folder: Path, server: Server, connect: Connect, key: str, later: Later
) -> None:
    holder = connect(server, manage(folder, "latch_token", "create", "holder", "--scope", "*"))
    held = [holder.take(f"{key}:{n}", ttl=30)["token"] for n in range(2)]
    waiting = [later(small.acquire, f"{key}:{n}", timeout=1) for n in range(2)]
    until(lambda: waiters(f"{key}:0") + waiters(f"{key}:1") == 2)
    refused = small.acquire(f"{key}:0", timeout=1)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_waits")
    assert refused.headers["RateLimit"] == '"waits";r=0'
    small.take(f"{key}:free", timeout=1)  # what need not wait is no wait
    assert [answer.result().status_code for answer in waiting] == [408, 408]
    until(lambda: waiters(f"{key}:0") + waiters(f"{key}:1") == 0)
    for n, token in enumerate(held):
        holder.release(f"{key}:{n}", token)
    small.take(f"{key}:0", timeout=1)
