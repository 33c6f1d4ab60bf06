"""Messages that are lost, servers that stand still or come back, pools that are small."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from typing import Any

import pytest
import redis

from django_latch import Latch, LatchNotAcquired, LatchTimeout, LatchUnavailable, latch
from django_latch.heartbeat import heartbeat
from django_latch.store import exchange, scripts
from tests import servers
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at, timeouts
from tests.integration.until import until
from tests.waiting.crowd import BRISK, PATIENCE, Crowd, auntil, eventually, queue, waiters

SLICE = BRISK["SLICE"]

#: Where the server counts the messages; emptied before the database is examined.
COUNT = "messages"


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


#: Put before a script that wakes waiters.
LOSSY = f"""
local function push(list, message)
  if redis.call('INCR', '{COUNT}') % 10 == 0 then return 0 end
  return redis.call('LPUSH', list, message)
end
"""


@pytest.fixture
def every_tenth_lost(monkeypatch: pytest.MonkeyPatch, raw: redis.Redis) -> Iterator[None]:
    """Every tenth wake message never reaches its list, and nobody is told to look for it."""
    original = scripts.script

    def lossy(verb: str) -> scripts.Script:
        text = LOSSY + original(verb).text.replace("call('LPUSH', ", "push(")
        return scripts.Script(verb, text, sha1(text.encode(), usedforsecurity=False).hexdigest())

    monkeypatch.setattr(exchange, "script", lossy)
    yield
    raw.delete(COUNT)


@pytest.mark.usefixtures("_brisk", "every_tenth_lost")
def test_a_lost_message_costs_a_slice_at_most(raw: redis.Redis, crowd: Crowd) -> None:
    gaps: list[float] = []
    left = [15] * 4
    released = time.monotonic()

    def work(at: int) -> None:
        nonlocal released
        while left[at]:
            with lock():
                gaps.append(time.monotonic() - released)
                left[at] -= 1
                others = sum(bool(left[other]) for other in range(4) if other != at)
                until(lambda others=others: waiters(raw) == others)  # alone it needs no messages
                released = time.monotonic()

    with lock():
        for at in range(4):
            crowd.queue_up(work, at)
        released = time.monotonic()
    crowd.results()
    assert int(raw.getdel(COUNT) or 0) >= 20, "no messages were lost"
    assert max(gaps) >= SLICE / 4, "the lost ones were not missed"
    assert max(gaps) < SLICE + 1
    audit.assert_free(raw, "job")


@pytest.mark.usefixtures("_brisk", "every_tenth_lost")
def test_a_lost_message_costs_a_task_a_slice_at_most(raw: redis.Redis) -> None:
    gaps: list[float] = []
    released = time.monotonic()

    async def work() -> None:
        nonlocal released
        async with lock():
            gaps.append(time.monotonic() - released)
            released = time.monotonic()

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(60)))

    asyncio.run(main())
    assert int(raw.getdel(COUNT) or 0) >= 20
    assert max(gaps) < SLICE + 1
    audit.assert_free(raw, "job")


def test_four_connections_serve_ten_waiters_and_the_holder(raw: redis.Redis, crowd: Crowd) -> None:
    small = {"OPTIONS": {"CONNECTION_POOL_KWARGS": {"max_connections": 4}}}
    with locks_at(servers.url(), **small):
        holder = lock(ttl=0.9).acquire()
        for _ in range(10):
            crowd.queue_up(lambda: lock().acquire().release())
        until(lambda: audit.blocked(raw) == 10)
        (record,) = [r for r in audit.records(raw, "job").values() if r.state == "held"]
        # The heartbeat gets through, and so does a renewal by hand, and the release.
        until(lambda: audit.records(raw, "job")[holder.token].exp > record.exp)
        begun = time.monotonic()
        holder.renew()
        holder.release()
        assert time.monotonic() - begun < 2
        crowd.results()
    audit.assert_free(raw, "job")


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.usefixtures("_brisk")
@pytest.mark.parametrize("timeout", [0.5, pytest.param(1.5, marks=pytest.mark.chaos)])
def test_a_wait_on_a_frozen_server_ends_in_time(crowd: Crowd, timeout: float) -> None:
    """By its own time; an answer that takes longer than the command time-out is an outage."""
    with servers.valkey() as server, locks_at(server.url, **timeouts(5)):
        plain = redis.Redis(port=server.port, decode_responses=True)
        with lock(heartbeat=False) as holder:
            future = crowd.start(attempt, timeout)
            until(lambda: audit.blocked(plain) == 1)
            with frozen(server.pid):
                error, took = future.result(PATIENCE)
            assert isinstance(error, LatchTimeout)
            assert timeout <= took < timeout + 2
            assert error.reason == "timeout"
            # What could not be said then is said when the server goes on.
            until(lambda: waiters(plain) == 0)
            holder.renew()
        plain.close()


def attempt(timeout: float) -> tuple[LatchNotAcquired | LatchUnavailable, float]:
    begun = time.monotonic()
    with pytest.raises((LatchNotAcquired, LatchUnavailable)) as refused:
        lock(timeout=timeout).acquire()
    return refused.value, time.monotonic() - begun


@pytest.mark.usefixtures("_brisk")
def test_a_long_wait_on_a_frozen_server_is_an_outage(crowd: Crowd) -> None:
    with servers.valkey() as server, locks_at(server.url, **timeouts(0.5)):
        plain = redis.Redis(port=server.port, decode_responses=True)
        with lock(heartbeat=False) as holder:
            future = crowd.start(attempt, 15)
            until(lambda: audit.blocked(plain) == 1)
            with frozen(server.pid):
                error, took = future.result(PATIENCE)
            assert isinstance(error, LatchUnavailable)
            assert error.reason == "timeout"
            assert took < SLICE + 2 * 0.5 + 2
            until(lambda: waiters(plain) == 0)
            holder.renew()
        plain.close()


@pytest.mark.usefixtures("_brisk")
def test_a_task_that_waits_on_a_frozen_server_ends_in_time() -> None:
    async def main(plain: redis.Redis, pid: int) -> None:
        async with lock(heartbeat=False) as holder:
            tasks = [asyncio.create_task(aattempt(0.5)) for _ in range(3)]
            await auntil(lambda: waiters(plain) == 3)
            os.kill(pid, signal.SIGSTOP)
            try:
                outcomes = await asyncio.gather(*tasks)
            finally:
                os.kill(pid, signal.SIGCONT)
            for error, took in outcomes:
                assert isinstance(error, LatchTimeout)
                assert 0.5 <= took < 2.5
            await auntil(lambda: waiters(plain) == 0)
            await holder.arenew()

    with servers.valkey() as server, locks_at(server.url, **timeouts(5)):
        plain = redis.Redis(port=server.port, decode_responses=True)
        asyncio.run(main(plain, server.pid))
        plain.close()


async def aattempt(seconds: float) -> tuple[BaseException, float]:
    begun = time.monotonic()
    with pytest.raises((LatchNotAcquired, LatchUnavailable)) as refused:
        await lock(timeout=seconds).aacquire()
    return refused.value, time.monotonic() - begun


@pytest.mark.usefixtures("_brisk")
def test_a_cancelled_task_does_not_wait_for_a_frozen_server() -> None:
    async def main(plain: redis.Redis, pid: int) -> None:
        async with lock(heartbeat=False):
            task = asyncio.create_task(lock().aacquire())
            await auntil(lambda: waiters(plain) == 1)
            os.kill(pid, signal.SIGSTOP)
            try:
                begun = time.monotonic()
                task.cancel()
                await asyncio.wait([task])
                assert time.monotonic() - begun < 1 + 2
                assert task.cancelled()
            finally:
                os.kill(pid, signal.SIGCONT)
            await auntil(lambda: waiters(plain) == 0)

    with servers.valkey() as server, locks_at(server.url, **timeouts(5)):
        plain = redis.Redis(port=server.port, decode_responses=True)
        asyncio.run(main(plain, server.pid))
        plain.close()


@pytest.mark.usefixtures("_brisk")
def test_waiters_outlive_a_restart_of_the_server(crowd: Crowd) -> None:
    """All data are gone: the holder is told, and the waiters go on."""
    with servers.valkey() as server, locks_at(server.url, **timeouts(2)):
        holder = lock(ttl=0.9).acquire()
        served: list[int] = []

        def wait(number: int) -> None:
            for _ in range(20):
                try:
                    with lock(ttl=20):
                        served.append(number)
                        return
                except LatchUnavailable:  # a connection that was refused meanwhile
                    time.sleep(0.05)
            pytest.fail("never served")

        for number in range(5):
            crowd.start(wait, number)
        plain = redis.Redis(port=server.port, decode_responses=True)
        until(lambda: waiters(plain) == 5)
        plain.close()
        server.stop()
        server.start()
        crowd.results()
        assert sorted(served) == [0, 1, 2, 3, 4]
        until(lambda: not heartbeat.owing)  # what was refused a connection is said later
        until(lambda: holder.lost)
        assert holder.lost in ("missing", "expired", "unreachable", "taken")


@pytest.mark.usefixtures("_brisk")
def test_a_flush_under_a_holder_and_twenty_waiters(raw: redis.Redis, crowd: Crowd) -> None:
    order: list[int] = []
    holder = lock(ttl=0.9).acquire()

    def take(number: int) -> None:
        with lock():
            order.append(number)

    for number in range(20):
        crowd.queue_up(take, number)
    tickets = list(queue(raw).values())
    with raw.pipeline() as pipe:  # one that comes after the loss has the lock, before any waiter
        pipe.flushdb()
        pipe.execute()
        newcomer = lock(timeout=0).try_acquire()
    until(lambda: holder.lost)
    assert holder.lost in ("missing", "taken")
    if newcomer is None:  # a waiter's poll was faster
        crowd.results()
        assert sorted(order) == list(range(20))
        return
    until(lambda: waiters(raw) == 20)
    assert list(queue(raw).values()) == tickets
    newcomer.release()
    crowd.results()
    assert order == list(range(20))
    audit.assert_free(raw, "job")


@pytest.mark.usefixtures("_brisk")
def test_a_wait_ends_by_its_own_clock_while_messages_come_for_others(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with lock():
        future = crowd.queue_up(attempt, 0.7)
        stop = threading.Event()

        def push() -> None:
            while not stop.is_set():
                for key in raw.keys(audit.BUCKET + "W:*"):
                    raw.lpush(key, "somebody-else")
                for token in queue(raw):
                    wake = audit.records(raw, "job").get(token)
                    if wake is not None:
                        raw.lpush(audit.BUCKET + "W:" + wake.raw.split("|")[9], "x")
                        raw.pexpire(audit.BUCKET + "W:" + wake.raw.split("|")[9], 1000)
                stop.wait(0.02)

        thread = threading.Thread(target=push)
        thread.start()
        error, took = future.result(PATIENCE)
        stop.set()
        thread.join()
        assert isinstance(error, LatchTimeout)
        assert 0.7 <= took < 2.7


@pytest.mark.usefixtures("valkey")
def test_a_flush_of_the_scripts_is_not_noticed(raw: redis.Redis, crowd: Crowd) -> None:
    with latch_settings(**BRISK):
        order: list[int] = []

        def take(number: int) -> None:
            with lock():
                order.append(number)

        with lock():
            for number in range(5):
                crowd.queue_up(take, number)
            raw.script_flush()
        crowd.results()
        assert order == [0, 1, 2, 3, 4]
    eventually(lambda: audit.assert_free(raw, "job"))
