"""Data that vanishes under a holder: told within one heartbeat, and never two owners told so."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from django_latch import Latch, LatchBusy, LatchLost, LatchNotHeld, Lease, latch
from django_latch.signals import lock_lost
from example_project.valkey import EmbeddedValkey
from tests.integration import audit
from tests.integration.until import renewed_for, until

TTL = 0.9
BEAT = TTL / 3


def lock(**options: object) -> Latch:
    return latch("job", **{"timeout": 0, "ttl": TTL, **options})  # type: ignore[arg-type]


class Losses:
    """Hears of leases that are lost."""

    def __init__(self) -> None:
        self.heard = threading.Event()
        self.payloads: list[dict[str, object]] = []

    def __call__(self, **payload: object) -> None:
        self.payloads.append(payload)
        self.heard.set()

    def told_within(self, seconds: float) -> str:
        assert self.heard.wait(seconds), "the loss was not told"
        (payload,) = self.payloads
        return str(payload["reason"])


@pytest.fixture
def losses() -> Iterator[Losses]:
    made = Losses()
    lock_lost.connect(made)
    yield made
    lock_lost.disconnect(made)


@contextmanager
def taken() -> Iterator[Lease]:
    """A lease that may be lost in the block."""
    lease = lock().acquire()
    yield lease
    if lease.lost is None:
        lease.release()


def flush(raw: redis.Redis) -> None:
    raw.flushdb()


def delete_records(raw: redis.Redis) -> None:
    raw.delete(audit.key("R", "job"))


def delete_list_of_holders(raw: redis.Redis) -> None:
    raw.hdel(audit.key("R", "job"), "@")


@pytest.mark.parametrize("lose", [flush, delete_records, delete_list_of_holders])
@pytest.mark.usefixtures("broken_keys")
def test_a_holder_is_told_within_one_heartbeat(
    raw: redis.Redis, losses: Losses, lose: object
) -> None:
    with taken() as lease:
        begun = time.monotonic()
        lose(raw)  # type: ignore[operator]
        reason = losses.told_within(BEAT + 2)
        assert time.monotonic() - begun < BEAT + 2
        assert reason == lease.lost == "missing"
        assert losses.payloads[0]["fence"] == lease.fence
        assert lease.token not in repr(losses.payloads)
        with pytest.raises(LatchLost):
            lease.ensure_held()
        for refused in (lease.renew, lease.release, lease.detach):
            with pytest.raises(LatchNotHeld):
                refused()
    assert audit.kinds(raw, "job")[-1] == "lost"


@pytest.mark.parametrize("kind", ["Q", "V", "P", "stamp", "index", "events"])
@pytest.mark.usefixtures("broken_keys")
def test_deleting_any_other_key_loses_nothing(raw: redis.Redis, kind: str) -> None:
    lock().acquire().release()  # leaves a tomb
    with taken() as lease:
        fence = lease.fence
        raw.delete(audit.key(kind, "" if len(kind) > 1 else "job"))
        with pytest.raises(LatchBusy):
            lock().acquire()
        renewed_for(lease, BEAT)  # by more than one beat that went out after the loss
        lease.ensure_held()
        assert raw.zscore(audit.key("index"), "job") is not None
    with lock() as other:
        assert other.fence > fence


def test_a_new_owner_is_unharmed_by_one_who_lost(raw: redis.Redis, losses: Losses) -> None:
    with taken() as lease:
        raw.flushdb()
        with lock() as other:
            assert losses.told_within(BEAT + 2) == "missing"
            for refused in (lease.renew, lease.release):
                with pytest.raises(LatchNotHeld):
                    refused()
            time.sleep(TTL)  # through several heartbeats of the new owner
            other.ensure_held()
            assert audit.listed(raw, "job") == [other.token]
            assert other.fence > lease.fence


def test_fences_rise_whatever_is_lost(raw: redis.Redis) -> None:
    fences = []
    for lose in [lambda: None, raw.flushdb, raw.script_flush, raw.flushdb] * 5:
        with lock(heartbeat=False) as lease:
            fences.append(lease.fence)
        lose()
    assert fences == sorted(set(fences))


def test_fences_rise_where_the_stamp_is_ahead_of_the_clock(raw: redis.Redis) -> None:
    ahead = int(time.time() + 3600) * 1_000_000
    raw.set(audit.key("stamp"), ahead, px=audit.WEEK)
    fences = []
    for _ in range(3):
        with lock() as lease:
            fences.append(lease.fence)
    assert fences == [ahead + 1, ahead + 2, ahead + 3]


def test_script_flush_at_any_moment_is_not_noticed(raw: redis.Redis) -> None:
    lease = lock().acquire()
    for step in (lease.renew, lambda: lock().adopt(lease.detach()).release()):
        raw.script_flush()
        step()
    raw.script_flush()
    with lock() as again:
        raw.script_flush()
        renewed_for(again, BEAT)  # by the heartbeat, too
        again.ensure_held()
        raw.script_flush()
        assert lock().try_acquire() is None
        raw.script_flush()
    audit.assert_free(raw, "job")


def test_an_evicted_lock_is_a_lost_lock(raw: redis.Redis, losses: Losses) -> None:
    with taken() as lease:
        raw.delete(*raw.keys("*"))
        assert losses.told_within(BEAT + 2) == "missing"
        assert lease.remaining() == 0


def test_the_server_is_away_for_longer_than_the_lease(
    losses: Losses, valkey_of_its_own: EmbeddedValkey
) -> None:
    with taken() as lease:
        valkey_of_its_own.stop()
        begun = time.monotonic()
        assert losses.told_within(TTL + 2) == "unreachable"
        assert time.monotonic() - begun > TTL / 2
        assert lease.lost == "unreachable"


def test_the_server_is_away_for_a_moment(losses: Losses, valkey_of_its_own: EmbeddedValkey) -> None:
    """Paused for longer than a heartbeat, but shorter than the lease."""
    with latch("job", ttl=3, timeout=0) as lease:
        pid = valkey_of_its_own.pid
        os.kill(pid, signal.SIGSTOP)
        until(lambda: lease._trouble)  # a renewal had no answer
        os.kill(pid, signal.SIGCONT)
        renewed_for(lease, 0)
        lease.ensure_held()
    assert not losses.payloads
