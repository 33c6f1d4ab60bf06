"""The helpers for the tests of other projects."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator

import pytest
import redis
from django.core import mail
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import SimpleTestCase, override_settings

from django_latch import LatchBusy, LatchNotHeld, LatchValueError, inventory, latch
from django_latch.conf import conf
from django_latch.core import verbs
from django_latch.report import report
from django_latch.stale import clear_stale
from django_latch.store.connections import store
from django_latch.testing import MemoryStore, assert_free, assert_held, memory_locks


@pytest.fixture
def memory() -> Iterator[MemoryStore]:
    with memory_locks() as made:
        yield made


@pytest.mark.usefixtures("memory")
def test_locks_are_in_memory_and_not_on_the_server(raw: redis.Redis) -> None:
    with latch("a", timeout=0):
        assert_held("a")
        with pytest.raises(LatchBusy):
            latch("a", timeout=0).acquire()
        assert raw.dbsize() == 0
    assert_free("a")


def test_each_use_begins_empty_and_the_settings_come_back() -> None:
    before = conf.backend
    with memory_locks(TTL=5):
        assert (conf.backend, conf.ttl) == ("memory", 5)
        latch("a", timeout=0, heartbeat=False).acquire().detach()
    with memory_locks():
        assert_free("a")
    assert conf.backend == before == "redis"


@memory_locks()
def test_it_is_a_decorator_too() -> None:
    assert isinstance(store(), MemoryStore)


def test_it_decorates_coroutine_functions(raw: redis.Redis) -> None:
    @memory_locks()
    async def body() -> int:
        async with latch("a", timeout=0):
            return raw.dbsize()

    assert asyncio.run(body()) == 0


@memory_locks(TTL=5)
class TestsOfAClass(SimpleTestCase):
    def test_that_leaves_a_lock(self) -> None:
        self.assert_none_then_leave_one()

    def test_that_leaves_one_too(self) -> None:
        self.assert_none_then_leave_one()

    def assert_none_then_leave_one(self) -> None:
        assert (conf.backend, conf.ttl) == ("memory", 5)
        assert_free("a")
        latch("a", timeout=0, heartbeat=False).acquire().detach()


def test_one_may_be_used_within_itself() -> None:
    locks = memory_locks()
    with locks as outer, latch("a", timeout=0):
        with locks as inner:
            assert_free("a")
            assert store() is inner
        assert store() is outer
        assert_held("a")
    assert conf.backend == "redis"


def test_a_wrong_setting_changes_nothing() -> None:
    with pytest.raises(ImproperlyConfigured, match="TTLS"), memory_locks(TTLS=5):
        pytest.fail("entered")
    assert conf.backend == "redis"


@pytest.mark.usefixtures("memory")
def test_other_settings_may_change_meanwhile() -> None:
    with latch("a", timeout=0):
        with override_settings(DJANGO_LATCH={"BACKEND": "memory", "CACHE_ALIAS": "locks"}):
            assert_held("a")
        assert_held("a")


def test_time_can_be_advanced(memory: MemoryStore) -> None:
    lease = latch("a", timeout=0, ttl=30).acquire()
    memory.advance(29)
    assert_held("a")
    memory.advance(2)
    assert_free("a")
    with pytest.raises(LatchNotHeld) as caught:
        lease.renew()
    assert caught.value.reason == "expired"
    assert lease.lost == "expired"


def test_a_waiter_takes_over_when_time_is_advanced(memory: MemoryStore) -> None:
    latch("a", timeout=0, ttl=60).acquire().detach()  # by nobody that is alive
    entered = threading.Event()

    def wait() -> None:
        with latch("a", timeout=30):
            entered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    until = time.monotonic() + 5
    while not (lock := inventory.get("a")) or not lock.waiters:
        assert time.monotonic() < until
    memory.advance(61)
    assert entered.wait(2), "well before the end of its slice"
    thread.join(2)


def test_time_does_not_go_back(memory: MemoryStore) -> None:
    with pytest.raises(LatchValueError, match="forward"):
        memory.advance(-1)


def test_everything_can_be_lost(memory: MemoryStore) -> None:
    lease = latch("a", timeout=0).acquire()
    memory.flush()
    assert_free("a")
    with pytest.raises(LatchNotHeld):
        lease.renew()
    assert lease.lost == "missing"


def test_assertions_say_what_they_found(memory: MemoryStore) -> None:
    with pytest.raises(AssertionError, match="'a' is not held: nobody"):
        assert_held("a")
    with latch("a", timeout=0, owner="the importer"):
        assert assert_held("a").owner.label == "the importer"
        with pytest.raises(AssertionError, match=r"held by the importer.*, 0 waiting"):
            assert_free("a")


def test_they_ask_a_real_server_as_well() -> None:
    with latch("a", timeout=0):
        assert_held("a")
    assert_free("a")


def test_the_inventory_reads_memory(memory: MemoryStore) -> None:
    for n in range(5):
        latch(f"job {n}", timeout=0, ttl=10 + n).acquire().detach()
    assert inventory.count() == 5
    assert [lock.name for lock in inventory.page(1, 2)] == ["job 1", "job 2"]
    assert [lock.name for lock in inventory.page(0, 1, reverse=True)] == ["job 4"]
    assert len(inventory.scan(3)[0]) == 3
    holder = assert_held("job 0")
    inventory.clear(
        "job 0", fence=holder.fence, fingerprint=holder.fingerprint, reason="test", actor="me"
    )
    assert_free("job 0")
    memory.advance(60)
    cleared = clear_stale(actor="me")
    assert [(c.name, c.what) for c in cleared] == [(f"job {n}", "expired") for n in range(1, 5)]
    assert inventory.count() == 0


@pytest.mark.usefixtures("memory")
def test_the_report_reads_memory() -> None:
    with override_settings(DJANGO_LATCH={"BACKEND": "memory", "EVENTS": "all"}):
        with latch("a", timeout=0):
            pass
        assert [event.kind for event in report("a").events] == ["released", "acquired"]


def test_what_has_ended_does_not_stay_in_memory(memory: MemoryStore) -> None:
    for n in range(50):
        latch(f"job {n}", timeout=0).acquire().release()
    memory.advance(300)
    for _ in range(1000):
        memory.call(verbs.count())
    assert len(memory._model.bucket.locks) <= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_begins_with_an_empty_store(memory: MemoryStore) -> None:
    with latch("a", timeout=0):
        here, there = os.pipe()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                assert_free("a")
                os.write(there, b"free")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.read(here, 10) == b"free"
        assert_held("a")
    os.close(here)
    os.close(there)


def test_the_check_warns_of_memory_outside_a_test_run(
    monkeypatch: pytest.MonkeyPatch, memory: MemoryStore
) -> None:
    def found() -> list[str]:
        return [message.id for message in run_checks() if "latch.W00" in message.id]

    assert found() == []
    monkeypatch.delattr(mail, "outbox")
    assert found() == ["django_latch.W004"]
