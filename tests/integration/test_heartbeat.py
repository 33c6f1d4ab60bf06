"""The thread that renews: how often, how cheaply, and when it stops."""

from __future__ import annotations

import threading
import time

import pytest
import redis

from django_latch import Latch, LatchLost, latch
from django_latch import heartbeat as module
from django_latch.heartbeat import heartbeat
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at, timeouts
from tests.integration.proxy import proxy
from tests.integration.until import renewed_for, until


def lock(name: str = "job", **options: object) -> Latch:
    return latch(name, **{"timeout": 0, **options})  # type: ignore[arg-type]


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("django_latch")]


def calls(raw: redis.Redis, command: str) -> int:
    return int(raw.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])


def test_a_lease_is_renewed_every_third_of_its_ttl(raw: redis.Redis) -> None:
    with lock(ttl=0.9) as lease:
        raw.config_resetstat()
        begun = time.monotonic()
        until(lambda: calls(raw, "evalsha") >= 3)
        assert 0.6 < time.monotonic() - begun < 0.9 + 2
        lease.ensure_held()
        assert lease.remaining() > 0.3
    audit.assert_free(raw, "job")


def test_a_lease_outlives_its_ttl_many_times_over(raw: redis.Redis) -> None:
    with lock(ttl=0.15) as lease:
        fence = lease.fence
        time.sleep(0.15 * 8)
        lease.ensure_held()
        assert lock().try_acquire() is None
        assert audit.records(raw, "job")[lease.token].fence == fence


def test_without_a_heartbeat_a_lease_ends_by_itself() -> None:
    lease = lock(ttl=0.2, heartbeat=False).acquire()
    begun = time.monotonic()
    until(lambda: lease.lost)
    assert time.monotonic() - begun > 0.15
    assert lease.lost == "expired"


def test_ten_thousand_leases_leave_nothing_but_one_thread(raw: redis.Redis) -> None:
    shared = lock(ttl=30)
    shared.acquire().release()
    clients = raw.info("clients")["connected_clients"]
    for _ in range(10_000):
        shared.acquire().release()
    assert len(heartbeat) == 0
    assert threads() == ["django_latch-heartbeat"]
    assert raw.info("clients")["connected_clients"] <= clients + 1  # the heartbeat's own
    assert len(raw.keys("*")) <= 4
    assert raw.hlen(audit.key("R", "job")) <= 64
    audit.assert_free(raw, "job")


def test_a_thousand_leases_are_renewed_by_one_thread_in_batches(raw: redis.Redis) -> None:
    with proxy() as network, locks_at(network.url):
        leases = [lock(f"job {number}", ttl=4).acquire() for number in range(1000)]
        assert threads() == ["django_latch-heartbeat"]
        acquired = {lease.name: audit.records(raw, lease.name)[lease.token].exp for lease in leases}
        raw.config_resetstat()
        until(lambda: calls(raw, "evalsha") >= 1000, within=2 + 2)
        # Pieces of at most 64 kB, as they came over the network: 1000 calls are half a megabyte.
        assert 1 <= len(network.calls("renew")) < 100
        for lease in leases:
            lease.ensure_held()
            assert audit.records(raw, lease.name)[lease.token].exp > acquired[lease.name]
        for lease in leases:
            lease.release()
    audit.assert_nothing_held(raw)


def test_one_bad_lease_does_not_hurt_the_others(raw: redis.Redis) -> None:
    leases = [lock(f"job {number}", ttl=0.9).acquire() for number in range(5)]
    raw.delete(audit.key("R", "job 2"))
    until(lambda: leases[2].lost)
    assert leases[2].lost == "missing"
    lost = audit.now(raw)
    for lease in leases[:2] + leases[3:]:
        # Renewed since, for longer than a lease.
        until(lambda one=lease: audit.records(raw, one.name)[one.token].exp > lost + 1800)
    for lease in leases[:2] + leases[3:]:
        lease.ensure_held()
        lease.release()


def test_an_error_in_the_heartbeat_does_not_end_it(
    raw: redis.Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()
    renew = module.Heartbeat._renew

    def fail_once(self: module.Heartbeat, leases: object) -> None:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError("a bug")
        renew(self, leases)  # type: ignore[arg-type]

    with lock(ttl=0.6) as lease:
        monkeypatch.setattr(module.Heartbeat, "_renew", fail_once)
        assert failed.wait(5)
        seen = audit.now(raw)
        until(lambda: audit.records(raw, lease.name)[lease.token].exp > seen + 1200)
        lease.ensure_held()
    assert "met an error of its own" in caplog.text


def test_a_fault_of_one_store_costs_its_own_leases_only_and_no_time(
    raw: redis.Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = lock("broken", ttl=0.9).acquire()
    with latch_settings(PREFIX="other"), lock("sound", ttl=0.9) as sound:
        batch = type(broken.store).batch

        def fail(self: object, calls: object) -> object:
            if self is broken.store:
                raise ZeroDivisionError("in a credential provider, for instance")
            return batch(self, calls)  # type: ignore[arg-type]

        monkeypatch.setattr(type(broken.store), "batch", fail)
        until(lambda: broken.lost)
        sound.ensure_held()
        renewed_for(sound, 0.5)
        sound.ensure_held()
        monkeypatch.undo()
    raw.delete(*raw.keys("other:*"))
    assert broken.lost == "unreachable"
    assert 0 < caplog.text.count("met an error of its own") < 20


def test_dropping_a_lease_warns_and_stops_its_renewal(raw: redis.Redis) -> None:
    leases = [lock(ttl=0.6).acquire()]
    with pytest.warns(ResourceWarning, match=f"unreleased.*{leases[0].fingerprint}"):
        leases.clear()
    assert len(heartbeat) == 0
    begun = time.monotonic()
    until(lambda: lock().inspect() is None)
    assert time.monotonic() - begun > 0.3
    with lock():
        pass


def test_the_thread_that_acquired_may_end(raw: redis.Redis) -> None:
    leases = []
    thread = threading.Thread(target=lambda: leases.append(lock(ttl=0.3).acquire()))
    thread.start()
    thread.join()
    renewed_for(leases[0], 0.6)
    leases[0].ensure_held()
    leases[0].release()
    audit.assert_free(raw, "job")


def test_a_lease_released_by_another_thread() -> None:
    lease = lock().acquire()
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    with pytest.raises(LatchLost):
        lease.ensure_held()
    with lock():
        pass


def test_renewals_that_are_lost_now_and_then_cost_nothing(raw: redis.Redis) -> None:
    with proxy() as network, locks_at(network.url, **timeouts(1)):
        with lock(ttl=1.2) as lease:
            for fault in ("close", "swallow", "close"):
                network.arm("renew", fault)
                until(lambda: network.spent)
            renewed_for(lease, 0.5)
            lease.ensure_held()
        audit.assert_free(raw, "job")


def test_a_renewal_read_too_late_brings_nothing_back() -> None:
    with proxy() as network, locks_at(network.url, **timeouts(5)):
        lease = lock(ttl=0.5).acquire()
        network.arm("renew", "swallow", times=50)
        until(lambda: lease.lost)
        assert lease.lost == "unreachable"
        with pytest.raises(LatchLost):
            lease.ensure_held()
        assert lease.remaining() == 0
