"""A store that does not answer, or answers with nonsense; and what is not an outage."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from django.core.management import call_command

from django_latch import FreshUntil, LatchCorrupt, LatchTimeout, LatchUnavailable, snapshot
from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.integration import audit
from tests.integration.aliases import locks_at, timeouts
from tests.integration.proxy import proxy
from tests.integration.until import until
from tests.snapshot.slow import slow
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call
from tests.snapshot.test_election import waiting

NOWHERE = "redis://127.0.0.1:1/0"


def test_s16_an_outage_raises(sweep: Sweep) -> None:
    with locks_at(NOWHERE), pytest.raises(LatchUnavailable) as outage:
        snapshot(NAME, sweep)
    assert (outage.value.reason, outage.value.name) == ("connection", NAME)
    assert sweep.runs == 0


def test_s16_or_computes(sweep: Sweep) -> None:
    with locks_at(NOWHERE):
        report = snapshot(NAME, on_outage="compute", shapes={"t": str}, shape="t").report(sweep)
    assert (report.value, report.outcome, report.fence) == ("1", "outage", 0)
    assert "no usable answer" in report.error


def test_s16_or_takes_the_last_value_of_this_process(
    valkey_of_its_own: EmbeddedValkey, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, keep_for=600, on_outage="local", shapes={"t": str})
    shared.get(sweep)
    time.sleep(0.1)
    valkey_of_its_own.stop()
    report = shared.report(sweep)
    assert (report.value, report.outcome, report.state) == (1, "outage", "hit")
    assert 0.1 <= report.age < 5
    assert shared.shaped("t").get(sweep) == "1"
    assert sweep.runs == 1


def test_s16_with_the_deadline_of_the_value(valkey_of_its_own: EmbeddedValkey) -> None:
    shared = snapshot(NAME, fresh_for=60, on_outage="local")
    shared.get(lambda: FreshUntil("brief", 0.1))
    valkey_of_its_own.stop()
    time.sleep(0.15)
    report = shared.report(lambda: "none")
    assert (report.value, report.outcome, report.state) == ("brief", "outage", "stale")
    assert report.fresh_for < 0


def test_s16_of_a_bounded_age(valkey_of_its_own: EmbeddedValkey, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.1, keep_for=0.3, on_outage="local")
    shared.get(sweep)
    valkey_of_its_own.stop()
    time.sleep(0.4)
    with pytest.raises(LatchUnavailable):
        shared.get(sweep)


def test_s16_and_nothing_that_was_invalidated(sweep: Sweep) -> None:
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(0.5)):
        shared = snapshot(NAME, fresh_for=60, on_outage="local")
        shared.get(sweep)
        shared.invalidate()
        server.stop()
        with pytest.raises(LatchUnavailable):
            shared.get(sweep)


def test_s16_and_nothing_that_was_invalidated_while_it_was_computed(sweep: Sweep) -> None:
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(0.5)):
        shared = snapshot(NAME, fresh_for=60, on_outage="local")
        with sweep.held():
            computed = call(shared.report, sweep)
            sweep.await_begin()
            shared.invalidate()
        assert computed.result(10).value == 1
        server.stop()
        with pytest.raises(LatchUnavailable):
            shared.get(sweep)


def test_s17_not_every_request_pays_the_time_out(sweep: Sweep) -> None:
    with slow(30) as way, locks_at(way.url, **timeouts(0.4)):
        shared = snapshot(NAME, wait=10)
        begun = time.monotonic()
        with pytest.raises(LatchUnavailable):
            shared.get(sweep)
        first = time.monotonic() - begun
        begun = time.monotonic()
        for _ in range(20):
            with pytest.raises(LatchUnavailable, match="not asked again for") as outage:
                shared.get(sweep)
        assert time.monotonic() - begun < 0.4
        assert first >= 0.4
        assert outage.value.reason == "timeout"


def test_s17_nor_does_a_peek_and_both_name_the_snapshot(sweep: Sweep) -> None:
    with slow(30) as way, locks_at(way.url, **timeouts(0.4)):
        shared = snapshot(NAME, wait=10)
        with pytest.raises(LatchUnavailable, match=f"about '{NAME}'"):
            shared.invalidate()
        begun = time.monotonic()
        for _ in range(20):
            with pytest.raises(LatchUnavailable, match=f"about '{NAME}'.*not asked again for"):
                shared.peek()
        assert time.monotonic() - begun < 0.4


def test_s17_the_back_off_is_short(sweep: Sweep) -> None:
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(0.5)):
        shared = snapshot(NAME, fresh_for=60, wait=10)
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(LatchUnavailable):
            shared.get(sweep)
        os.kill(server.pid, signal.SIGCONT)
        until(lambda: _answers(shared, sweep), within=10)


@pytest.mark.parametrize("on_outage", ["raise", "local", "compute"])
def test_s17_a_store_that_hangs_for_longer_than_every_budget_is_an_outage(
    on_outage: str, sweep: Sweep
) -> None:
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(1)):
        shared = snapshot(NAME, fresh_for=60, wait=0.4, on_outage=on_outage)
        shared.get(sweep)
        os.kill(server.pid, signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(LatchTimeout):
                shared.get(sweep)
        outcomes = []
        begun = time.monotonic()
        for _ in range(20):
            try:
                outcomes.append(shared.report(sweep).outcome)
            except LatchUnavailable as outage:
                outcomes.append(outage.reason)
        assert set(outcomes) == {"timeout" if on_outage == "raise" else "outage"}
        assert time.monotonic() - begun < 0.4 + 0.5, "and there is a back-off"
        os.kill(server.pid, signal.SIGCONT)
        time.sleep(1.1)
        assert shared.report(sweep).outcome == "hit"


def test_s12_a_store_that_hangs_is_asked_for_no_permit(sweep: Sweep) -> None:
    with slow(30) as way, locks_at(way.url, **timeouts(2)):
        begun = time.monotonic()
        with pytest.raises(LatchTimeout, match="the store took longer"):
            snapshot(NAME, sweep, wait=0.3, on_busy="compute")
        report = snapshot(NAME, wait=0.3, on_busy="pending").report(sweep)
        assert (report.outcome, report.refreshing) == ("pending", False)
        assert time.monotonic() - begun < 1.5
    assert sweep.runs == 0


def _answers(shared: object, sweep: Sweep) -> bool:
    try:
        shared.get(sweep)  # type: ignore[attr-defined]
    except LatchUnavailable:
        return False
    return True


@pytest.mark.usefixtures("apart")
def test_the_store_goes_while_callers_wait(valkey_of_its_own: EmbeddedValkey, sweep: Sweep) -> None:
    """The waiters hear of the outage; the one that computed has its value all the same."""
    shared = snapshot(NAME, fresh_for=60, wait=15)

    async def main() -> list[object]:
        return await asyncio.gather(
            *(shared.aget(sweep.a) for _ in range(3)), return_exceptions=True
        )

    plain = redis.Redis.from_url(valkey_of_its_own.url, decode_responses=True)
    with sweep.held():
        leader = call(shared.report, sweep)
        sweep.await_begin()
        waiters = [call(shared.get, sweep) for _ in range(3)]
        loop = call(asyncio.run, main())
        until(lambda: waiting(plain) == 4)
        plain.close()
        valkey_of_its_own.stop()
        for waiter in waiters:
            assert isinstance(waiter.exception(10), LatchUnavailable)
        assert all(isinstance(one, LatchUnavailable) for one in loop.result(10))
    report = leader.result(10)
    assert (report.value, report.fence) == (1, 0)
    assert sweep.runs == 1


@pytest.mark.parametrize("fault", ["close", "swallow"])
def test_s22_a_publication_that_gets_no_answer_returns_the_value(
    fault: str, raw: redis.Redis, sweep: Sweep
) -> None:
    with proxy() as way, locks_at(way.url, **timeouts(0.4)):
        way.arm("snapshot_publish", fault, times=2)  # type: ignore[arg-type]
        report = snapshot(NAME, fresh_for=60, wait=10).report(sweep)
        assert (report.value, report.fence) == (1, 0)
        assert way.spent
    until(lambda: audit.records(raw, LOCK) == {})


def test_s22_a_publication_that_never_arrives_frees_the_lock(
    raw: redis.Redis, sweep: Sweep
) -> None:
    with proxy() as way, locks_at(way.url, **timeouts(0.4)):
        way.arm("snapshot_publish", "hold", times=2)
        assert snapshot(NAME, fresh_for=60, wait=10).get(sweep) == 1
        until(lambda: audit.records(raw, LOCK) == {})
        assert snapshot(NAME, fresh_for=60, wait=10).get(sweep) == 2
        fence = snapshot(NAME).peek().fence
        way.deliver()  # of the first: too late
        assert (snapshot(NAME).peek().value, snapshot(NAME).peek().fence) == (2, fence)


def test_s22_a_full_memory_refuses_the_value_and_frees_the_lock(sweep: Sweep) -> None:
    with servers.valkey() as server, locks_at(f"{server.url}/0", **timeouts(2)):
        plain = redis.Redis.from_url(f"{server.url}/0", decode_responses=True)
        plain.config_set("maxmemory-policy", "noeviction")

        def compute() -> int:
            plain.config_set("maxmemory", 1)
            return sweep()

        shared = snapshot(NAME, fresh_for=60, wait=10)
        report = shared.report(compute)
        assert (report.value, report.fence) == (1, 0)
        assert audit.records(plain, LOCK) == {}
        plain.config_set("maxmemory", 0)
        assert shared.get(sweep) == 2
        plain.close()


@pytest.mark.parametrize("kind", ["S", "N", "R", "snapshots"])
def test_s35_a_key_of_a_wrong_type_is_named_and_repaired(
    kind: str, raw: redis.Redis, sweep: Sweep, broken_keys: None
) -> None:
    key = audit.key(kind) if kind == "snapshots" else audit.key(kind, LOCK)
    raw.set(key, "something else")
    shared = snapshot(NAME, fresh_for=60, wait=1)
    if kind in ("S", "R"):
        with pytest.raises(LatchCorrupt) as corrupt:
            shared.get(sweep)
        assert key in str(corrupt.value)
        assert "latch_clear --stale" in str(corrupt.value)
    else:
        assert shared.get(sweep) == 1, "the value was computed; only its publication fails"
    call_command("latch_clear", "--stale", verbosity=0)
    assert raw.type(key) != "string"
    shared.get(sweep)
    assert shared.peek().state == "hit"
    audit.assert_sound(raw)


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """A server that greets as Redis does, and gives one and the same answer to all else."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_talk, args=(client, reply), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0?protocol=2"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _talk(client: socket.socket, reply: bytes) -> None:
    with client:
        while data := client.recv(65536):
            count = data.count(b"*") if data.startswith(b"*") else 1
            client.sendall(
                (b"+OK\r\n" if b"CLIENT" in data or b"SELECT" in data else reply) * count
            )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"$-1\r\n", "reply"),
        (b"*1\r\n$1\r\n5\r\n", "reply"),
        (b"-ERR something is wrong\r\n", "refused"),
        (b"-LOADING Redis is loading\r\n", "loading"),
        (b"-NOPERM this user has no permissions\r\n", "auth"),
        (b"-NOAUTH Authentication required.\r\n", "auth"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_s35_replies_that_are_none_are_an_outage(reply: bytes, reason: str, sweep: Sweep) -> None:
    with answering(reply) as url, locks_at(url), pytest.raises(LatchUnavailable) as outage:
        snapshot(NAME, sweep, wait=5)
    assert outage.value.reason == reason
    assert sweep.runs == 0


def test_s35_a_wrong_password_is_not_tried_again(sweep: Sweep) -> None:
    with servers.valkey() as server:
        plain = redis.Redis.from_url(server.url)
        plain.config_set("requirepass", "right")
        plain.close()
        url = server.url.replace("redis://", "redis://:wrong@")
        with locks_at(f"{url}/0"), pytest.raises(LatchUnavailable) as outage:
            snapshot(NAME, sweep, wait=5)
        assert outage.value.reason == "auth"
