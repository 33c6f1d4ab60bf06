"""A lease from its beginning to its end, against a real server."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
import redis

from django_latch import (
    Latch,
    LatchBusy,
    LatchError,
    LatchLost,
    LatchNotAcquired,
    LatchNotHeld,
    LatchValueError,
    current_lease,
    latch,
)
from django_latch.core import verbs
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.until import until

MINE, OTHERS = "m" * 40, "o" * 40


def lock(name: str = "job", **options: object) -> Latch:
    return latch(name, timeout=0, **options)  # type: ignore[arg-type]


def test_a_held_lock_is_in_the_store_and_a_released_one_is_not(raw: redis.Redis) -> None:
    lease = lock(ttl=30).acquire()
    (record,) = audit.records(raw, "job").values()
    assert (record.state, record.fence, record.lease) == ("held", lease.fence, 30_000)
    assert raw.zscore(audit.key("index"), "job") == record.exp
    assert 29 < lease.remaining() < 30
    assert lease.lost is None
    lease.ensure_held()
    audit.assert_sound(raw)
    lease.release()
    audit.assert_free(raw, "job")
    assert audit.tombs(raw, "job") == {lease.token: "released"}
    assert audit.kinds(raw, "job") == ["acquired", "released"]


def test_after_release_the_lease_says_that_it_is_over() -> None:
    lease = lock().acquire()
    lease.release()
    assert lease.remaining() == 0
    with pytest.raises(LatchLost, match="released") as lost:
        lease.ensure_held()
    assert lost.value.reason == "released"
    with pytest.raises(LatchNotHeld) as refused:
        lease.renew()
    assert refused.value.reason == "released"


def test_release_twice_is_quiet_and_harms_nobody(raw: redis.Redis) -> None:
    lease = lock().acquire()
    lease.release()
    other = lock().acquire()
    lease.release()
    assert audit.listed(raw, "job") == [other.token]
    other.release()


def test_a_second_caller_is_refused_with_the_facts_of_the_holder() -> None:
    with lock(ttl=20, owner="nightly import", meta={"run": 7}) as lease:
        with pytest.raises(LatchBusy) as refused:
            lock().acquire()
        error = refused.value
        assert error.name == "job"
        assert error.reason == "busy"
        assert error.waited == 0
        assert error.ttl_remaining is not None
        assert 19 < error.ttl_remaining <= 20
        assert error.holder is not None
        assert error.holder["label"] == "nightly import"
        assert error.holder["meta"] == {"run": 7}
        assert error.holder["fence"] == lease.fence
        assert error.holder["since"]
        assert "nightly import" in str(error)
        assert lease.token not in repr(error.args)
        assert lock().try_acquire() is None


def test_the_token_is_never_shown() -> None:
    with lock() as lease:
        shown = [repr(lease), str(lease), repr(lock().inspect()), str(lock().inspect().as_dict())]
        assert not [text for text in shown if lease.token in text]
        assert lease.fingerprint in repr(lease)


def test_fences_rise() -> None:
    fences = []
    for _ in range(20):
        with lock() as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))


def test_each_entry_of_a_shared_latch_is_a_lease_of_its_own() -> None:
    shared = lock()
    with shared as first:
        pass
    with shared as second:
        assert second.token != first.token
        with pytest.raises(LatchBusy), shared:
            pytest.fail("the body ran without the lock")


def test_threads_never_share_a_lease_of_a_shared_latch() -> None:
    shared, inside, refused = lock(), threading.Event(), threading.Event()
    outcomes: list[str] = []

    def enter() -> None:
        inside.wait(5)
        try:
            with shared:
                outcomes.append("entered")
        except LatchBusy:
            outcomes.append("busy")
        refused.set()

    other = threading.Thread(target=enter)
    other.start()
    with shared as lease:
        inside.set()
        assert refused.wait(5)
        lease.ensure_held()
    other.join()
    assert outcomes == ["busy"]


def test_with_releases_when_the_body_fails_and_keeps_its_error(raw: redis.Redis) -> None:
    with pytest.raises(ZeroDivisionError), lock():
        raise ZeroDivisionError
    audit.assert_free(raw, "job")


def test_an_error_at_the_end_never_masks_the_bodys_own(
    raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def lose_and_fail() -> None:
        raw.flushdb()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), lock(heartbeat=False):
        lose_and_fail()
    assert "was not released" in caplog.text


def test_with_says_at_its_end_that_the_lock_was_lost(raw: redis.Redis) -> None:
    with pytest.raises(LatchNotHeld) as lost, lock(heartbeat=False):
        raw.flushdb()
    assert lost.value.reason == "never_held"


def test_current_lease_is_the_innermost() -> None:
    assert current_lease() is None
    with lock("outer") as outer:
        assert current_lease() is outer
        with lock("inner") as inner:
            assert current_lease() is inner
        assert current_lease() is outer
    assert current_lease() is None


def test_renew_resets_the_lease(raw: redis.Redis) -> None:
    with lock(ttl=5, heartbeat=False) as lease:
        before = audit.records(raw, "job")[lease.token].exp
        time.sleep(0.05)
        lease.renew()
        after = audit.records(raw, "job")[lease.token]
        assert before + 50 <= after.exp <= audit.now(raw) + 5000
        assert after.fence == lease.fence
        assert raw.zscore(audit.key("index"), "job") == after.exp
        assert 4.8 < lease.remaining() <= 5


def test_who_asks_again_with_their_own_token_keeps_the_fence_and_gets_the_full_lease(
    raw: redis.Redis,
) -> None:
    first = lock(ttl=5).acquire(token=MINE)
    time.sleep(0.1)
    again = lock(ttl=5).acquire(token=MINE)
    assert again.fence == first.fence
    assert again.remaining() > 4.93
    assert audit.records(raw, "job")[MINE].exp > audit.now(raw) + 4930
    again.release()
    audit.assert_free(raw, "job")
    with pytest.raises(LatchNotHeld) as refused:
        first.renew()
    assert refused.value.reason == "released"


def test_a_token_serves_one_acquisition() -> None:
    lock().acquire(token=MINE).release()
    with pytest.raises(LatchNotAcquired) as refused:
        lock().acquire(token=MINE)
    assert refused.value.reason == "released"
    with lock() as fresh:
        assert fresh.token != MINE


def test_a_token_whose_lease_has_expired_is_refused() -> None:
    lease = lock(ttl=0.05, heartbeat=False).acquire(token=MINE)
    time.sleep(0.06)
    assert lease.lost == "expired"
    with pytest.raises(LatchNotAcquired) as refused:
        lock().acquire(token=MINE)
    assert refused.value.reason == "expired"


@pytest.mark.parametrize("token", ["", "short", "x" * 31, "x" * 129, "t" * 39 + "\n", "é" * 40, 7])
def test_a_token_that_is_no_secret_or_no_safe_text_is_refused(token: object) -> None:
    with pytest.raises(LatchValueError, match="token must be 32-128 characters") as refused:
        lock().acquire(token=token)  # type: ignore[arg-type]
    assert str(token) == "" or str(token) not in str(refused.value)


def test_an_expired_lease_is_final(raw: redis.Redis) -> None:
    lease = lock(ttl=0.05, heartbeat=False).acquire()
    time.sleep(0.06)
    for refused in (lease.renew, lease.release, lease.detach):
        with pytest.raises(LatchNotHeld) as error:
            refused()
        assert error.value.reason == "expired"
    with pytest.raises(LatchLost):
        lease.ensure_held()
    with lock() as other:
        with pytest.raises(LatchNotHeld):
            lease.release()
        other.ensure_held()
        assert audit.listed(raw, "job") == [other.token]
    assert audit.kinds(raw, "job") == ["acquired", "expired", "acquired", "released"]
    ((_, event),) = [e for e in audit.events(raw, "job") if e[0] == "expired"]
    assert event["fence"] == str(lease.fence)
    assert 50 <= int(event["held"]) < 2000
    assert '"pid":' in event["owner"]


def test_detach_and_adopt_hand_a_lock_over(raw: redis.Redis) -> None:
    lease = lock(ttl=20).acquire()
    token = lease.detach()
    assert token == lease.token
    with pytest.raises(LatchLost, match="adopted"):
        lease.ensure_held()
    assert audit.listed(raw, "job") == [token]  # nobody may conclude from a death that it is free
    assert '"pid"' not in audit.records(raw, "job")[token].raw
    del lease

    adopted = lock(ttl=20).adopt(token)
    assert adopted.token != token
    assert audit.listed(raw, "job") == [adopted.token]
    assert '"pid"' in audit.records(raw, "job")[adopted.token].raw
    with pytest.raises(LatchNotHeld) as twice:
        lock().adopt(token)
    assert twice.value.reason == "adopted"
    adopted.release()
    audit.assert_free(raw, "job")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_lease_has_no_duplicate(duplicate: Callable[[object], object]) -> None:
    with latch("job", timeout=0) as lease, pytest.raises(TypeError, match=r"detach\(\) it here"):
        duplicate(lease)


def test_an_adopter_has_a_higher_fence() -> None:
    lease = lock().acquire()
    fence = lease.fence
    with lock().adopt(lease.detach()) as adopted:
        assert adopted.fence > fence


def test_adopting_what_nobody_holds_is_refused() -> None:
    with pytest.raises(LatchNotHeld) as refused:
        lock().adopt(MINE)
    assert refused.value.reason == "missing"
    with lock(), pytest.raises(LatchNotHeld) as refused:
        lock().adopt(OTHERS)
    assert refused.value.reason == "taken"


@pytest.mark.parametrize("fence", [None, 1])
def test_release_by_a_foreign_token_changes_nothing(raw: redis.Redis, fence: int | None) -> None:
    with lock(ttl=20) as lease:
        before = raw.hgetall(audit.key("R", "job"))
        foreign = [OTHERS, lease.token[:-1], lease.token + "0", lease.token.upper()]
        for token in foreign:
            closed = store().call(verbs.end("job", token, "released", fence))
            assert closed.reason == "taken"
        assert store().call(verbs.end("job", lease.token, "released", 1)).reason == "superseded"
        assert raw.hgetall(audit.key("R", "job")) == before
        lease.renew()


def test_durations_may_be_timedeltas(raw: redis.Redis) -> None:
    with latch("job", ttl=timedelta(minutes=2), timeout=timedelta(0)) as lease:
        assert audit.records(raw, "job")[lease.token].lease == 120_000


def test_max_hold_ends_a_lease(raw: redis.Redis) -> None:
    lease = lock(ttl=0.3, max_hold=0.5).acquire()
    begun = time.monotonic()
    while lease.lost is None:
        time.sleep(0.005)
        assert time.monotonic() < begun + 2.5
    assert time.monotonic() - begun > 0.4
    assert lease.lost == "expired"
    # The server counts on for a hundredth of the ttl; it was not renewed past max_hold.
    until(lambda: lock().inspect() is None, within=0.05 + 2)


def test_min_hold_keeps_the_permit_after_the_release(raw: redis.Redis) -> None:
    lock().acquire(min_hold=0.3).release()
    begun = time.monotonic()
    with pytest.raises(LatchBusy):
        lock().acquire()
    audit.assert_sound(raw)
    while (lease := lock().try_acquire()) is None:
        assert time.monotonic() < begun + 2.3
        time.sleep(0.005)
    assert time.monotonic() - begun > 0.25
    lease.release()
    audit.assert_free(raw, "job")


def test_inspect_tells_who_holds() -> None:
    assert lock().inspect() is None
    with lock(owner="me") as lease:
        info = lock().inspect()
        assert info is not None
        assert info.holder is not None
        assert info.holder.fence == lease.fence
        assert info.holder.fingerprint == lease.fingerprint
        assert info.holder.owner.label == "me"
    assert lock().inspect() is None


def test_every_error_of_ours_is_a_latch_error() -> None:
    with lock(), pytest.raises(LatchError):
        lock().acquire()
