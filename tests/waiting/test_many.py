"""Several locks at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from django_latch import (
    Latch,
    LatchBusy,
    LatchNameError,
    LatchNotHeld,
    LatchTimeout,
    LatchUnavailable,
    LatchValueError,
    latch,
    signals,
)
from django_latch.hold import Hold
from django_latch.many import MultiLease
from tests.integration import audit
from tests.integration.aliases import locks_at, timeouts
from tests.integration.calls import A, grant
from tests.integration.programs import program
from tests.integration.proxy import Proxy, proxy
from tests.integration.until import until
from tests.waiting.crowd import PATIENCE, Crowd, auntil, eventually, waiters


def both(*names: str, **options: Any) -> Any:
    return Latch.many(*(names or ("b", "a", "c")), **{"ttl": 20, "timeout": PATIENCE, **options})


def calls(raw: redis.Redis) -> int:
    """How many scripts the server has run."""
    stats = raw.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval"))


def test_all_of_them_and_by_name(raw: redis.Redis) -> None:
    with both() as leases:
        assert [lease.name for lease in leases] == ["b", "a", "c"]
        assert len(leases) == 3
        assert leases.by_name["a"] is leases[1]
        assert len({lease.token for lease in leases}) == 3
        assert len({lease.fence for lease in leases}) == 3
        assert leases.lost is None
        leases.ensure_held()
        for lease in leases:
            assert audit.listed(raw, lease.name) == [lease.token]
    audit.assert_nothing_held(raw)


@pytest.mark.usefixtures("valkey")
def test_free_locks_take_one_round_trip(raw: redis.Redis) -> None:
    both().acquire().release()  # the scripts are known to the server
    raw.config_resetstat()
    leases = both().acquire()
    assert calls(raw) == 1
    leases.release()
    assert calls(raw) == 4


def test_they_are_told_of_and_renewed_as_others_are(raw: redis.Redis) -> None:
    heard: list[str] = []

    def hear(signal: Any, name: str, **payload: Any) -> None:
        heard.append(name)

    signals.lock_acquired.connect(hear)
    try:
        with both(ttl=0.3) as leases:
            assert sorted(heard) == ["a", "b", "c"]
            time.sleep(0.9)
            leases.ensure_held()
    finally:
        signals.lock_acquired.disconnect(hear)
    assert audit.kinds(raw, "a") == ["acquired", "released"]


def test_a_refusal_leaves_none_of_them(raw: redis.Redis) -> None:
    with latch("b"):
        for _ in range(20):
            with pytest.raises(LatchBusy) as refused:
                both(timeout=0).acquire()
            assert refused.value.name == "b"
            # Before the refusal is told: whoever tries next does not meet what is left of it.
            assert audit.records(raw, "a") == audit.records(raw, "c") == {}
        assert both(timeout=0).try_acquire() is None
        with pytest.raises(LatchTimeout) as late:
            both(timeout=0.3).acquire()
        assert late.value.name == "b"
        assert audit.records(raw, "a") == audit.records(raw, "c") == {}
    audit.assert_nothing_held(raw)


def test_the_timeout_is_for_all_of_them_together(crowd: Crowd) -> None:
    """The first is free after a while; what is left of the time is too short for the second."""
    first = latch("a", ttl=20).acquire()
    with latch("b", ttl=20):
        begun = time.monotonic()
        timer = threading.Timer(0.4, first.release)
        timer.start()
        with pytest.raises(LatchTimeout) as refused:
            both("b", "a", timeout=0.7).acquire()
        assert 0.7 <= time.monotonic() - begun < 2.7
        assert refused.value.name == "b"
        timer.join()


def test_what_is_held_is_renewed_while_the_rest_is_waited_for(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with latch("c", ttl=20):
        future = crowd.queue_up(both(ttl=0.4).acquire, name="c")
        time.sleep(1.0)
        assert len(audit.listed(raw, "a")) == len(audit.listed(raw, "b")) == 1
    leases = future.result(PATIENCE)
    leases.ensure_held()
    leases.release()
    assert "expired" not in audit.kinds(raw, "a") + audit.kinds(raw, "b")
    audit.assert_nothing_held(raw)


def test_opposite_orders_never_wait_for_each_other(raw: redis.Redis, crowd: Crowd) -> None:
    def work(*names: str) -> int:
        for _ in range(40):
            with both(*names) as leases:
                leases.ensure_held()
        return 40

    for names in [("a", "b"), ("b", "a"), ("a", "b", "c"), ("c", "a")]:
        crowd.start(work, *names)
    assert crowd.results() == [40] * 4
    audit.assert_nothing_held(raw)


OPPOSITE = """
names = hear().split()
say("ready")
hear()
for _ in range(60):
    with Latch.many(*names, ttl=20, timeout=20) as leases:
        leases.ensure_held()
say("done")
"""


def test_processes_with_opposite_orders(raw: redis.Redis) -> None:
    with program(OPPOSITE) as one, program(OPPOSITE) as other:
        one.say("a b c")
        other.say("c b a")
        for each in (one, other):
            each.expect("ready")
        for each in (one, other):
            each.say("go")
        for each in (one, other):
            each.expect("done")
    audit.assert_nothing_held(raw)


def test_an_order_of_names_alone(raw: redis.Redis, crowd: Crowd) -> None:
    """Whoever waits for a name holds only earlier ones."""
    with latch("b", ttl=20):
        crowd.queue_up(lambda: both("c", "b", "a").acquire().release(), name="b")
        assert len(audit.listed(raw, "a")) == 1
        assert audit.records(raw, "c") == {}
    crowd.results()


def test_one_that_is_lost_keeps_none_of_the_others(raw: redis.Redis) -> None:
    leases = both().acquire()
    raw.delete(audit.key("R", "a"))
    with pytest.raises(LatchNotHeld) as refused:
        leases.release()
    assert refused.value.name == "a"
    assert leases.lost == refused.value.reason == "never_held"
    assert audit.records(raw, "b") == audit.records(raw, "c") == {}
    raw.zrem(audit.key("index"), "a")


def test_an_error_of_the_block_is_not_masked(raw: redis.Redis) -> None:
    def fail() -> None:
        with both():
            raw.delete(audit.key("R", "a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert audit.records(raw, "b") == {}
    raw.zrem(audit.key("index"), "a")


def test_releasing_twice_is_quiet(raw: redis.Redis) -> None:
    leases = both().acquire()
    leases.release()
    leases.release()
    audit.assert_nothing_held(raw)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "b", "a"), (), [str(n) for n in range(101)]])
def test_names_that_are_refused(names: tuple[str, ...], raw: redis.Redis) -> None:
    with pytest.raises(LatchValueError, match=r"1 to 100 different names"):
        Latch.many(*names)
    assert not raw.keys("*")


def test_a_bad_name_among_good_ones(raw: redis.Redis) -> None:
    with pytest.raises(LatchNameError):
        Latch.many("a", "")
    with pytest.raises(LatchNameError):
        Latch.many("a", "b:{year}").acquire()
    assert not raw.keys("*")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_interrupted_when_they_were_granted_none_stays(
    raw: redis.Redis, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    begin, begun = Hold.begin, 0

    def interrupted(hold: Hold, grant: Any) -> None:
        nonlocal begun
        begun += 1
        if begun == number:
            raise KeyboardInterrupt
        begin(hold, grant)

    monkeypatch.setattr(Hold, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        both().acquire()
    for name in "abc":
        eventually(lambda name=name: audit.assert_free(raw, name))  # type: ignore[misc]


def test_one_hundred(raw: redis.Redis) -> None:
    names = [f"lock {number}" for number in range(100)]
    with both(*names) as leases:
        assert len(leases) == 100
        leases.ensure_held()
    audit.assert_nothing_held(raw)


def test_a_skipping_latch_is_for_decorators(raw: redis.Redis) -> None:
    with pytest.raises(LatchValueError, match="decorators"), both(on_conflict="skip"):
        pytest.fail("it ran")


def test_shared_by_threads_each_leaves_its_own(raw: redis.Redis, crowd: Crowd) -> None:
    """With permits two are in the block at once, and leave it in the order they came."""
    shared = both(limit=2)
    entered, left = threading.Event(), threading.Event()

    def first() -> MultiLease:
        with shared as leases:
            entered.set()
            assert left.wait(PATIENCE)
            leases.ensure_held()
            return leases

    def second() -> MultiLease:
        assert entered.wait(PATIENCE)
        with shared as leases:
            pass
        left.set()
        return leases

    one, other = crowd.start(first), crowd.start(second)
    assert one.result(PATIENCE) is not other.result(PATIENCE)
    audit.assert_nothing_held(raw)


def test_the_async_twins(raw: redis.Redis) -> None:
    async def main() -> None:
        async with both() as leases:
            leases.ensure_held()
            assert await both(timeout=0).atry_acquire() is None
            with pytest.raises(LatchBusy):
                await both(timeout=0).aacquire()
        audit.assert_nothing_held(raw)
        waiting = None
        async with latch("b"):
            waiting = asyncio.create_task(both().aacquire())
            await auntil(lambda: waiters(raw, "b"))
        leases = await waiting
        await leases.arelease()

    async def opposite(*names: str) -> None:
        async with both(*names):
            await asyncio.sleep(0)

    async def crowded() -> None:
        orders = [("a", "b"), ("b", "a"), ("c", "a", "b")] * 20
        await asyncio.gather(*(opposite(*names) for names in orders))

    asyncio.run(main())
    asyncio.run(crowded())
    audit.assert_nothing_held(raw)


@pytest.fixture
def network() -> Iterator[Proxy]:
    """The locks are reached through a proxy; every script is known to the server."""
    with proxy() as between, locks_at(between.url, **timeouts(0.3)):
        both().acquire().release()
        latch("warm up", timeout=0).acquire().release()
        between.passed.clear()
        yield between


@pytest.mark.parametrize("fault", ["close", "swallow"])
def test_a_lost_reply(raw: redis.Redis, network: Proxy, fault: Any) -> None:
    """Sent once more it is told what the first was: its own locks do not refuse it."""
    network.arm("many", fault)
    leases = both(timeout=0).acquire()
    assert network.spent
    sent = network.calls("many")
    assert len(sent) == 2
    assert sent[0] == sent[1]
    leases.ensure_held()
    assert audit.kinds(raw, "a") == ["acquired", "released", "acquired"]
    leases.release()
    audit.assert_nothing_held(raw)


@pytest.mark.parametrize("fault", ["close", "swallow", "hold"])
@pytest.mark.parametrize("timeout", [0, 5])
def test_no_reply_at_all_is_an_outage_and_leaves_no_orphan(
    raw: redis.Redis, network: Proxy, fault: Any, timeout: float
) -> None:
    network.arm("many", fault, times=2)
    with pytest.raises(LatchUnavailable):
        both(timeout=timeout).acquire()
    until(lambda: all("abandoned" in audit.tombs(raw, name).values() for name in "abc"))
    for reply in network.deliver():  # a copy that arrives late grants nothing
        assert b"busy" in reply
    for name in "abc":
        audit.assert_free(raw, name)


def test_a_late_copy_grants_nothing_after_the_release(raw: redis.Redis, network: Proxy) -> None:
    leases = both(timeout=0).acquire()
    (sent,) = network.calls("many")
    leases.release()
    before = raw.hgetall(audit.key("R", "a"))
    assert b"busy" in network.send(sent)
    assert raw.hgetall(audit.key("R", "a")) == before
    audit.assert_nothing_held(raw)


def test_a_late_copy_meets_some_of_its_locks_only(raw: redis.Redis, network: Proxy) -> None:
    leases = both(timeout=0).acquire()
    (sent,) = network.calls("many")
    leases.by_name["a"].release()
    assert b"busy" in network.send(sent)
    assert audit.records(raw, "a") == {}
    leases.release()
    audit.assert_nothing_held(raw)


def test_a_short_time_is_kept_on_a_slow_network(raw: redis.Redis, network: Proxy) -> None:
    with locks_at(network.url, **timeouts(5)):
        network.arm("many", "swallow", times=2)
        begun = time.monotonic()
        with pytest.raises(LatchTimeout):
            both(timeout=0.4).acquire()
        assert 0.4 <= time.monotonic() - begun < 2.4
        eventually(lambda: audit.assert_nothing_held(raw))


def test_an_expired_holder_among_them_is_no_obstacle(raw: redis.Redis) -> None:
    grant(A, name="b", ttl=0.02)
    until(lambda: audit.now(raw) > audit.records(raw, "b")[A].exp)
    with both(timeout=0) as leases:
        leases.ensure_held()
    assert audit.kinds(raw, "b") == ["acquired", "expired", "acquired", "released"]
    audit.assert_nothing_held(raw)


def test_permits(raw: redis.Redis) -> None:
    with both(limit=2, timeout=0), both(limit=2, timeout=0):
        with pytest.raises(LatchBusy):
            both(limit=2, timeout=0).acquire()
        with pytest.raises(LatchBusy):  # an exclusive one does not join them
            both(timeout=0).acquire()
    audit.assert_nothing_held(raw)
