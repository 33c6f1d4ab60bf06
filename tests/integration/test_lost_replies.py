"""Replies that a proxy loses, and requests that it delivers late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from django_latch import Latch, LatchBusy, LatchUnavailable, Lease, latch
from django_latch.heartbeat import heartbeat
from tests.integration import audit
from tests.integration.aliases import locks_at, timeouts
from tests.integration.proxy import Fault, Proxy, proxy
from tests.integration.until import until

#: How long a swallowed reply is awaited in these tests.
PATIENCE = 0.3


@pytest.fixture
def network() -> Iterator[Proxy]:
    """The locks are reached through a proxy; every script is known to the server."""
    with proxy() as between, locks_at(between.url, **timeouts(PATIENCE)):
        with lock("warm up") as lease:
            lease.renew()
        with lock("warm up").adopt(lock("warm up").acquire().detach()):
            pass
        between.passed.clear()
        yield between
        until(lambda: not heartbeat.owing)  # while there is a way


def lock(name: str = "job", **options: object) -> Latch:
    return latch(name, timeout=0, ttl=20, **options)  # type: ignore[arg-type]


lossy = pytest.mark.parametrize("fault", ["close", "swallow"])


@lossy
def test_the_reply_of_an_acquire(raw: redis.Redis, network: Proxy, fault: Fault) -> None:
    network.arm("request", fault)
    lease = lock().acquire()
    assert network.spent
    assert len(network.calls("request")) == 2
    assert network.calls("request")[0] == network.calls("request")[1]
    assert list(audit.records(raw, "job")) == [lease.token]
    assert audit.kinds(raw, "job") == ["acquired"]
    lease.renew()
    lease.release()
    audit.assert_free(raw, "job")


@lossy
def test_the_reply_of_a_renewal(raw: redis.Redis, network: Proxy, fault: Fault) -> None:
    with lock(heartbeat=False) as lease:
        fence = lease.fence
        network.arm("renew", fault)
        lease.renew()
        assert network.spent
        assert lease.fence == fence
        assert lease.remaining() > 19
        assert lease.lost is None


@lossy
def test_the_reply_of_a_release(raw: redis.Redis, network: Proxy, fault: Fault) -> None:
    lease = lock().acquire()
    network.arm("end", fault)
    lease.release()
    assert network.spent
    assert audit.tombs(raw, "job") == {lease.token: "released"}
    assert audit.kinds(raw, "job") == ["acquired", "released"]
    audit.assert_free(raw, "job")


@lossy
def test_the_reply_of_a_detach_and_of_an_adoption(
    raw: redis.Redis, network: Proxy, fault: Fault
) -> None:
    lease = lock().acquire()
    network.arm("renew", fault)
    token = lease.detach()
    network.arm("adopt", fault)
    adopted = lock().adopt(token)
    assert network.spent
    assert audit.listed(raw, "job") == [adopted.token]
    assert audit.kinds(raw, "job") == ["acquired", "adopted"]
    adopted.release()


@lossy
def test_the_reply_of_a_refused_try(raw: redis.Redis, network: Proxy, fault: Fault) -> None:
    with lock() as holder:
        network.arm("request", fault)
        with pytest.raises(LatchBusy):
            lock().acquire()
        assert network.spent
        assert audit.listed(raw, "job") == [holder.token]
    audit.assert_free(raw, "job")


def test_a_try_that_was_refused_is_not_granted_later(raw: redis.Redis, network: Proxy) -> None:
    with lock():
        network.arm("request", "hold")  # the first copy is still under way
        with pytest.raises(LatchBusy):
            lock().acquire()
    (reply,) = network.deliver()
    assert b"ended\nabandoned" in reply
    audit.assert_free(raw, "job")


def test_an_acquire_that_arrives_after_its_release_grants_nothing(
    raw: redis.Redis, network: Proxy
) -> None:
    network.arm("request", "hold")
    lease = lock().acquire()
    lease.release()
    (reply,) = network.deliver()
    assert b"ended\nreleased" in reply
    audit.assert_free(raw, "job")


def test_every_call_delivered_once_more_after_the_end(raw: redis.Redis, network: Proxy) -> None:
    lease = lock().acquire()
    lease.renew()
    adopted = lock().adopt(lease.detach())
    adopted.release()
    before = raw.hgetall(audit.key("R", "job"))
    for call in [*network.passed, *reversed(network.passed)]:
        assert b"ended" in network.send(call)
    assert raw.hgetall(audit.key("R", "job")) == before
    audit.assert_free(raw, "job")


def unanswered(do: Callable[[], object]) -> LatchUnavailable:
    with pytest.raises(LatchUnavailable) as outage:
        do()
    return outage.value


@pytest.mark.parametrize(("fault", "reason"), [("close", "connection"), ("swallow", "timeout")])
def test_an_acquire_without_any_answer_is_an_outage_and_leaves_no_orphan(
    raw: redis.Redis, network: Proxy, fault: Fault, reason: str
) -> None:
    network.arm("request", fault, times=2)
    error = unanswered(lock().acquire)
    assert error.reason == reason
    assert error.name == "job"
    until(lambda: "abandoned" in audit.tombs(raw, "job").values())
    audit.assert_free(raw, "job")
    with lock():
        pass


def test_requests_that_arrive_after_the_outage_grant_nothing(
    raw: redis.Redis, network: Proxy
) -> None:
    network.arm("request", "hold", times=2)
    unanswered(lock().acquire)
    until(lambda: "abandoned" in audit.tombs(raw, "job").values())
    for reply in network.deliver():
        assert b"ended\nabandoned" in reply
    audit.assert_free(raw, "job")


@lossy
def test_a_release_without_any_answer_is_told_and_sent_again(
    raw: redis.Redis, network: Proxy, fault: Fault
) -> None:
    lease = lock().acquire()
    network.arm("end", fault, times=2)
    unanswered(lease.release)
    until(lambda: audit.tombs(raw, "job") == {lease.token: "released"})
    lease.release()  # the token was not forgotten
    audit.assert_free(raw, "job")


def test_a_release_that_never_arrived_is_sent_again(raw: redis.Redis, network: Proxy) -> None:
    lease = lock().acquire()
    network.arm("end", "hold", times=2)
    unanswered(lease.release)
    until(lambda: audit.tombs(raw, "job") == {lease.token: "released"})
    with lock() as other:
        for reply in network.deliver():
            assert b"ended\nreleased" in reply
        assert audit.listed(raw, "job") == [other.token]


@lossy
def test_a_renewal_without_any_answer_leaves_the_lease_until_its_deadline(
    raw: redis.Redis, network: Proxy, fault: Fault
) -> None:
    with lock(heartbeat=False) as lease:
        network.arm("renew", fault, times=2)
        unanswered(lease.renew)
        assert lease.lost is None
        assert lease.remaining() > 15
        lease.renew()


def waiting(outcome: list[Lease]) -> threading.Thread:
    waiter = threading.Thread(
        target=lambda: outcome.append(latch("job", timeout=10, ttl=20).acquire())
    )
    waiter.start()
    return waiter


@lossy
def test_a_waiter_whose_hand_over_was_lost(raw: redis.Redis, network: Proxy, fault: Fault) -> None:
    holder = lock().acquire()
    network.arm("request", "pass")  # the waiter's first
    network.arm("request", fault)  # the one that stands behind its BLPOP
    outcome: list[Lease] = []
    waiter = waiting(outcome)
    until(lambda: network.spent)
    holder.release()
    released = time.monotonic()
    waiter.join(10)
    (lease,) = outcome
    assert time.monotonic() - released < 2 + 4 * PATIENCE + 2
    assert audit.listed(raw, "job") == [lease.token]
    lease.release()
    audit.assert_free(raw, "job")


def test_a_waiter_whose_connections_break_keeps_its_place(raw: redis.Redis, network: Proxy) -> None:
    holder = lock().acquire()
    outcome: list[Lease] = []
    waiter = waiting(outcome)
    until(lambda: len(network.calls("request")) == 3)  # the holder's, the waiter's, and it parked
    ticket = raw.zrange(audit.key("Q", "job"), 0, -1, withscores=True)
    for _ in range(3):
        sent = len(network.calls("request"))
        network.cut()
        until(lambda sent=sent: len(network.calls("request")) == sent + 2)  # asked and parked again
    assert raw.zrange(audit.key("Q", "job"), 0, -1, withscores=True) == ticket
    holder.release()
    waiter.join(10)
    assert len(outcome) == 1
    outcome[0].release()
    audit.assert_free(raw, "job")
