"""A server whose memory is full: nothing new is granted, and what is held can be kept and freed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

from django_latch import LatchTimeout, LatchUnavailable, Lease, latch
from example_project.valkey import EmbeddedValkey
from tests.integration import audit
from tests.integration.until import until


@pytest.fixture
def server(valkey_of_its_own: EmbeddedValkey) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(f"{valkey_of_its_own.url}/0", decode_responses=True)
    yield client
    audit.assert_sound(client)
    client.close()


def fill(server: redis.Redis) -> None:
    server.config_set("maxmemory", 1)
    with pytest.raises(redis.ResponseError, match="used memory"):
        server.set("more", 1)


def test_an_acquire_fails_clearly_and_writes_nothing(server: redis.Redis) -> None:
    with latch("other", timeout=0):
        fill(server)
        before = set(server.keys("*"))
        with pytest.raises(LatchUnavailable, match="memory is full") as outage:
            latch("job", timeout=0).acquire()
        assert outage.value.reason == "oom"
        with pytest.raises(LatchUnavailable):
            latch("job", timeout=5).acquire()  # not after five seconds: waiting cannot help
        assert set(server.keys("*")) == before


def test_a_lease_can_be_renewed_handed_over_and_released(server: redis.Redis) -> None:
    lease = latch("job", timeout=0).acquire()
    fill(server)
    lease.renew()
    adopted = latch("job", timeout=0).adopt(lease.detach())
    adopted.renew()
    adopted.release()
    audit.assert_free(server, "job")


def test_the_heartbeat_goes_on(server: redis.Redis) -> None:
    with latch("job", ttl=0.6, timeout=0) as lease:
        fill(server)
        exp = audit.records(server, "job")[lease.token].exp
        until(lambda: audit.records(server, "job")[lease.token].exp > exp + 600)
        lease.ensure_held()


def test_the_lock_is_handed_over_to_who_waits_already(server: redis.Redis) -> None:
    holder = latch("job", timeout=0).acquire()
    got: list[Lease] = []
    waiter = threading.Thread(target=lambda: got.append(latch("job", timeout=10).acquire()))
    waiter.start()
    until(lambda: server.zcard(audit.key("Q", "job")) == 1)
    fill(server)
    holder.release()
    waiter.join(10)
    got[0].renew()
    got[0].release()
    audit.assert_free(server, "job")


def test_a_waiter_can_leave(server: redis.Redis) -> None:
    errors: list[Exception] = []

    def wait() -> None:
        try:
            latch("job", timeout=0.5).acquire()
        except LatchTimeout as error:
            errors.append(error)

    with latch("job", timeout=0):
        waiter = threading.Thread(target=wait)
        waiter.start()
        until(lambda: server.zcard(audit.key("Q", "job")) == 1)
        fill(server)
        waiter.join(5)
        assert len(errors) == 1
        assert not server.exists(audit.key("Q", "job"))
