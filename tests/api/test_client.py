"""L12, L13: the client releases whatever ends its block, and says when it lost the lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import httpx
import pytest

from django_latch import LatchBusy, LatchError, LatchLost, LatchNotHeld, LatchTimeout, inventory
from django_latch.client import AsyncLatchClient, LatchClient
from django_latch.exceptions import LatchNameError, LatchUnavailable, LatchValueError
from tests.api.conftest import Api
from tests.api.server import Server
from tests.integration.until import until


@pytest.fixture
def client(server: Server, token: str) -> Iterator[LatchClient]:
    with LatchClient(server.url, token=token) as made:
        yield made


def held(key: str) -> bool:
    lock = inventory.get(key)
    return lock is not None and bool(lock.holders)


def held_for(key: str) -> float:
    lock = inventory.get(key)
    return lock.holders[0].held_for if lock else 0.0


def test_releases_at_the_end_and_after_an_error(client: LatchClient, key: str) -> None:
    with client.lock(key, ttl=5, timeout=0, owner="job") as lease:
        assert held(key)
        assert client.inspect(key)["owner"] == "tests/job"
        assert lease.lost is None
        assert 4 < lease.remaining() <= 5
        lease.ensure_held()
        with pytest.raises(LatchBusy):
            client.acquire(key, timeout=0)
    assert not held(key)
    with pytest.raises(RuntimeError, match="own"), client.lock(key, timeout=0):
        raise RuntimeError("own")
    assert not held(key)


def test_returns_release_too(client: LatchClient, key: str) -> None:
    def work() -> int:
        with client.lock(key, timeout=0) as lease:
            return lease.fence

    assert work() > 0
    assert not held(key)


def test_renews_in_the_background(client: LatchClient, key: str) -> None:
    with client.lock(key, ttl=1, timeout=0) as lease:
        until(lambda: held_for(key) > 2)
        assert lease.lost is None
        assert lease.overrun == 0


def test_says_what_was_lost_and_for_how_long(client: LatchClient, key: str) -> None:
    lease = client.acquire(key, ttl=0.3, timeout=0, renew=False)
    until(lambda: lease.overrun > 0.1)
    assert lease.lost == "expired"
    with pytest.raises(LatchNotHeld):
        lease.release()
    overrun = lease.overrun
    assert overrun == lease.overrun, "the work has ended"


def test_a_block_that_ran_on_without_the_lock_says_so(client: LatchClient, key: str) -> None:
    def work() -> None:
        with client.lock(key, ttl=0.3, timeout=0, renew=False) as lease:
            until(lambda: lease.lost)

    with pytest.raises(LatchLost):
        work()


@pytest.mark.parametrize("renew", [True, False])
def test_the_overrun_ends_with_the_block(client: LatchClient, key: str, renew: bool) -> None:
    leases = []

    def work() -> None:
        with client.lock(key, ttl=0.3, timeout=0, renew=renew) as lease:
            leases.append(lease)
            client.force(key, "test")
            until(lambda: lease.lost)

    with pytest.raises(LatchLost):
        work()
    overrun = leases[0].overrun
    assert 0 < overrun == leases[0].overrun


def test_learns_of_a_release_by_force(client: LatchClient, key: str) -> None:
    lease = client.acquire(key, ttl=1, timeout=0)
    client.force(key, "test")
    until(lambda: lease.lost)
    assert lease.lost == "revoked"
    with pytest.raises(LatchLost):
        lease.ensure_held()


def test_maps_refusals(client: LatchClient, api: Api, server: Server, key: str) -> None:
    api.take(key, ttl=30)
    with pytest.raises(LatchTimeout) as refused:
        client.acquire(key, timeout=1)
    assert refused.value.position == 1
    with pytest.raises(LatchNameError):
        client.acquire("a/b")
    with LatchClient(server.url, token="wrong") as nobody, pytest.raises(LatchError) as error:
        nobody.acquire(key)
    assert error.value.reason == "unauthenticated"
    with LatchClient("http://127.0.0.1:1", token="x") as gone, pytest.raises(LatchUnavailable):
        gone.acquire(key, timeout=0)


@pytest.mark.parametrize("option", ["ttl", "timeout"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "5", None, True])
def test_refuses_what_is_no_duration(client: LatchClient, option: str, value: object) -> None:
    with pytest.raises(LatchValueError, match=option):
        client.acquire("job", **{option: value})


def answering(*bodies: object) -> LatchClient:
    """A client of something that answers 200, last with the last of these bodies."""
    left = [httpx.Response(200, json=body) for body in bodies]
    transport = httpx.MockTransport(lambda _: left.pop(0) if len(left) > 1 else left[0])
    return LatchClient("http://proxy", token="x", transport=transport)


@pytest.mark.parametrize("body", [{}, [], "sorry", {"status": "maintenance"}])
def test_a_page_with_status_200_is_no_lease(body: object) -> None:
    client = answering(body)
    for ask in (
        lambda: client.acquire("job", timeout=0),
        lambda: client.inspect("job"),
        lambda: client.force("job", "test"),
    ):
        with pytest.raises(LatchUnavailable, match="200"):
            ask()
    client = answering({"fence": 7, "key": "job"}, body)
    lease = client.acquire("job", ttl=30, timeout=0, renew=False)
    with pytest.raises(LatchUnavailable):
        lease.renew()
    assert lease.lost is None
    with pytest.raises(LatchUnavailable):
        lease.release()


def test_a_renewal_under_another_fence_is_a_loss() -> None:
    client = answering({"fence": 7, "key": "job"}, {"fence": 8, "key": "job"})
    lease = client.acquire("job", ttl=30, timeout=0, renew=False)
    with pytest.raises(LatchNotHeld):
        lease.renew()
    assert lease.lost == "superseded"


class LosesFirstReply(httpx.HTTPTransport):
    """Carries the first request out and loses its answer."""

    lost = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if not self.lost:
            self.lost = True
            answer.close()
            raise httpx.ReadError("lost")
        return answer


def test_a_lost_reply_costs_nothing(server: Server, token: str, key: str) -> None:
    with LatchClient(server.url, token=token, transport=LosesFirstReply()) as client:
        with client.lock(key, timeout=0) as lease:
            assert inventory.get(key).holders[0].fence == lease.fence  # type: ignore[union-attr]
        assert not held(key)


def run_async(main: Callable[[AsyncLatchClient], object], server: Server, token: str) -> None:
    async def run() -> None:
        async with AsyncLatchClient(server.url, token=token) as client:
            await main(client)  # type: ignore[misc]

    asyncio.run(run())


def test_async_releases_and_renews(server: Server, token: str, key: str) -> None:
    async def main(client: AsyncLatchClient) -> None:
        async with client.lock(key, ttl=1, timeout=0) as lease:
            await asyncio.to_thread(until, lambda: held_for(key) > 1.5)
            lease.ensure_held()
        assert not held(key)

    run_async(main, server, token)


def test_cancellation_releases_and_leaves_the_queue(server: Server, token: str, key: str) -> None:
    async def main(client: AsyncLatchClient) -> None:
        async def hold() -> None:
            async with client.lock(key, timeout=0):
                await asyncio.Event().wait()

        async def wait() -> None:
            await client.acquire(key, timeout=20)

        holder = asyncio.create_task(hold())
        await asyncio.to_thread(until, lambda: held(key))
        waiter = asyncio.create_task(wait())
        await asyncio.to_thread(until, lambda: inventory.get(key).waiters == 1)  # type: ignore[union-attr]
        for task in (waiter, holder):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert inventory.get(key) is None

    run_async(main, server, token)
