"""Keys of ours that hold something else: named, repaired, and no harm to other locks."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
import redis

from django_latch import (
    Latch,
    LatchBusy,
    LatchCorrupt,
    LatchNotHeld,
    LatchTimeout,
    Lease,
    inventory,
    latch,
)
from django_latch.stale import clear_stale
from django_latch.store.redis import RedisStore
from tests.integration import audit
from tests.integration.calls import grant
from tests.integration.until import until

pytestmark = pytest.mark.usefixtures("broken_keys")

OF_THE_LOCK = ["R", "Q", "V", "P"]
OF_ALL = ["stamp", "index", "events"]


def key(kind: str) -> str:
    return audit.key(kind, "" if kind in OF_ALL else "job")


def ruin(raw: redis.Redis, kind: str) -> None:
    """Put something else in the place of a key, as a careless program would."""
    raw.delete(key(kind))
    if kind == "stamp":
        raw.rpush(key(kind), "not ours")
    else:
        raw.set(key(kind), "not ours")


def acquire(name: str = "job", **options: object) -> Lease:
    return latch(name, **{"timeout": 0, **options}).acquire()  # type: ignore[arg-type]


def let_go(lease: Lease) -> None:
    """Release after a repair: it was lost with its record, unless it was released meanwhile."""
    with suppress(LatchNotHeld):
        lease.release()


@pytest.mark.parametrize("kind", ["R", "Q", *OF_ALL])
@pytest.mark.parametrize("timeout", [0, 3])
def test_an_acquire_names_key_and_remedy_and_grants_nothing(
    raw: redis.Redis, kind: str, timeout: int
) -> None:
    ruin(raw, kind)
    with pytest.raises(LatchCorrupt) as corrupt:
        acquire(timeout=timeout)
    error = corrupt.value
    assert error.name == "job"
    assert error.reason == "corrupt"
    assert key(kind) in str(error)
    assert "latch_clear" in str(error)
    assert kind == "R" or audit.records(raw, "job") == {}
    assert_ends(raw, but=key(kind))


@pytest.mark.parametrize("kind", ["R", "Q", *OF_ALL])
def test_several_at_once_are_none_then(raw: redis.Redis, kind: str) -> None:
    ruin(raw, kind)
    with pytest.raises(LatchCorrupt, match="latch_clear"):
        Latch.many("first", "job", timeout=0).acquire()
    assert audit.records(raw, "first") == {}
    assert kind == "R" or audit.records(raw, "job") == {}
    assert_ends(raw, but=key(kind))


def assert_ends(raw: redis.Redis, but: str) -> None:
    for found in raw.keys("*"):
        assert found == but or raw.pttl(found) > 0, found


@pytest.mark.parametrize("kind", OF_ALL)
def test_several_locks_are_not_granted_in_part(raw: redis.Redis, kind: str) -> None:
    ruin(raw, kind)
    with pytest.raises(LatchCorrupt) as corrupt:
        Latch.many("job", "more", timeout=0, ttl=100).acquire()
    assert key(kind) in str(corrupt.value)
    raw.delete(key(kind))
    for name in ("job", "more"):
        acquire(name).release()


@pytest.mark.parametrize("kind", ["R", "Q"])
def test_of_several_locks_the_broken_one_is_named(raw: redis.Redis, kind: str) -> None:
    raw.set(audit.key(kind, "more"), "not ours")
    for acquire_both in (
        Latch.many("job", "more", timeout=0).acquire,
        lambda: asyncio.run(Latch.many("job", "more", timeout=0).aacquire()),
    ):
        with pytest.raises(LatchCorrupt) as corrupt:
            acquire_both()
        assert (corrupt.value.name, kind + ":more" in str(corrupt.value)) == ("more", True)


@pytest.mark.parametrize("kind", ["V", "P"])
def test_a_waiter_names_key_and_remedy(raw: redis.Redis, kind: str) -> None:
    with latch("job", timeout=0):
        ruin(raw, kind)
        with pytest.raises(LatchCorrupt, match="latch_clear") as corrupt:
            acquire(timeout=3)
        assert key(kind) in str(corrupt.value)
        assert not raw.exists(audit.key("Q", "job"))
        assert_ends(raw, but=key(kind))
        raw.delete(key(kind))


@pytest.mark.parametrize("kind", [*OF_THE_LOCK, *OF_ALL])
def test_clear_stale_repairs_it(raw: redis.Redis, kind: str) -> None:
    ruin(raw, kind)
    planned = clear_stale(dry_run=True, actor="a test")
    assert raw.type(key(kind)) in ("string", "list")
    done = clear_stale(actor="a test")
    assert planned == done
    (repair,) = [each for each in done if each.what == "repaired"]
    assert key(kind) in repair.detail
    assert clear_stale(actor="a test") == []
    with latch("job", timeout=0):
        assert latch("job", timeout=0).try_acquire() is None
    audit.assert_nothing_held(raw)


def test_what_breaks_after_the_repair_saves_no_other_stale_lock(
    raw: redis.Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    grant(ttl=0.05)
    grant("b" * 40, name="other", ttl=0.05)
    time.sleep(0.06)
    ruin(raw, "R")
    monkeypatch.setattr(RedisStore, "repair", lambda self, *, dry_run: [])
    assert [each.name for each in clear_stale(actor="a test")] == ["other"]
    assert key("R") in caplog.text


def test_a_key_without_an_end_gets_one(raw: redis.Redis) -> None:
    with latch("job", timeout=0):
        for found in raw.keys("*"):
            raw.persist(found)
        done = clear_stale(actor="a test")
        assert {each.what for each in done} == {"repaired"}
        audit.assert_sound(raw)


@pytest.mark.parametrize("kind", OF_THE_LOCK)
def test_it_hurts_only_its_own_lock(raw: redis.Redis, kind: str) -> None:
    with latch("other", timeout=0, ttl=1) as other:
        grant(ttl=0.03)
        time.sleep(0.04)  # its entry in the index has passed: others' acquires come across it
        ruin(raw, kind)
        for _ in range(3):
            acquire("third").release()
        other.renew()
        assert [lock.name for lock in inventory.page(0, 10) if lock.name != "job"] == ["other"]


def test_it_is_met_once_and_not_at_every_acquire(
    raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    grant(ttl=0.03)
    time.sleep(0.04)
    ruin(raw, "R")
    for _ in range(5):
        acquire("other").release()
    assert [r.message for r in caplog.records if key("R") in r.message] != []
    assert len([r for r in caplog.records if key("R") in r.message]) == 1
    assert any(each.what == "repaired" for each in clear_stale(actor="a test"))
    acquire().release()


POISON = ["", "x", "held", "held|x|y", "held|1|2|3|4|5|6|7|-8||{}", "|" * 20, "held|" + "9" * 400]


@pytest.mark.parametrize("poison", POISON)
def test_a_poisoned_record_hurts_only_its_own_lock(raw: redis.Redis, poison: str) -> None:
    with latch("other", timeout=0) as other:
        lease = acquire(heartbeat=False)
        raw.hset(audit.key("R", "job"), lease.token, poison)
        for broken in (acquire, lease.renew, lease.release):
            with pytest.raises(LatchCorrupt, match="R:job"):
                broken()
        other.renew()
        acquire("third").release()
        names = {lock.name for lock in inventory.page(0, 10)}
        assert "other" in names
        clear_stale(actor="a test")
        let_go(lease)
        acquire().release()


def test_a_record_of_a_time_without_a_date_hurts_only_its_own_lock(raw: redis.Redis) -> None:
    with latch("other", timeout=0):
        lease = acquire(heartbeat=False)
        record = raw.hget(audit.key("R", "job"), lease.token)
        state, fence, _, *rest = record.split("|")
        raw.hset(audit.key("R", "job"), lease.token, "|".join([state, fence, "9" * 18, *rest]))
        with pytest.raises(LatchBusy):
            acquire()
        assert {lock.name for lock in inventory.page(0, 10)} == {"job", "other"}
        lease.release()


def test_a_poisoned_record_without_an_end_is_repaired_at_once(raw: redis.Redis) -> None:
    raw.hset(audit.key("R", "job"), mapping={"@": "a", "a": "x"})
    done = clear_stale(actor="a test")
    assert [each.what for each in done if each.name == "job"] == ["repaired"] * 2
    acquire().release()
    audit.assert_sound(raw)


def test_a_poisoned_list_of_holders_frees_the_lock_and_tells_the_holder(raw: redis.Redis) -> None:
    lease = acquire(heartbeat=False)
    raw.hset(audit.key("R", "job"), "@", "some thing else")
    acquire().release()
    with pytest.raises(LatchNotHeld) as lost:
        lease.renew()
    assert lost.value.reason == "missing"
    assert audit.listed(raw, "job") == []


def test_a_broken_index_costs_nobody_their_lease(raw: redis.Redis) -> None:
    with latch("job", timeout=0, ttl=0.6) as lease:
        ruin(raw, "index")
        first = audit.records(raw, "job")[lease.token].exp
        lease.renew()
        # The heartbeat's renewals, for longer than the lease.
        until(lambda: audit.records(raw, "job")[lease.token].exp > first + 600)
        lease.ensure_held()
        clear_stale(actor="a test")
        lease.renew()
        assert raw.zscore(audit.key("index"), "job")
    audit.assert_free(raw, "job")


def test_a_key_that_is_no_text_is_repaired(raw: redis.Redis) -> None:
    broken = audit.key("R").encode() + b":caf\xe9"
    raw.set(broken, "not ours")
    held = acquire()
    cleared = clear_stale(actor="a test")
    assert [(c.name, c.what) for c in cleared] == [(r"caf\udce9", "repaired")]
    assert not raw.exists(broken)
    held.release()


def test_a_stamp_that_is_no_number_is_replaced(raw: redis.Redis) -> None:
    raw.set(audit.key("stamp"), "not ours", px=1000)
    with latch("job", timeout=0) as lease:
        assert lease.fence > 1_700_000_000_000_000
    audit.assert_sound(raw)


@pytest.mark.parametrize("kind", ["P", "index", "events"])
def test_a_release_that_cannot_be_noted_frees_the_lock_all_the_same(
    raw: redis.Redis, kind: str
) -> None:
    lease = acquire()
    ruin(raw, kind)
    with pytest.raises(LatchCorrupt):
        lease.release()
    assert_ends(raw, but=key(kind))
    clear_stale(actor="a test")
    let_go(lease)
    acquire().release()


def test_waiters_are_told_too(raw: redis.Redis) -> None:
    with latch("job", timeout=0):
        raw.set(audit.key("Q", "job"), "not ours")
        with pytest.raises(LatchCorrupt):
            acquire(timeout=1)
        raw.delete(audit.key("Q", "job"))
        with pytest.raises(LatchTimeout):
            acquire(timeout=0.05)
