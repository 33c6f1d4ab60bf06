"""A store that cannot be reached or refuses: told in time, as what it is, and without a secret."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import redis

from django_latch import (
    Latch,
    LatchError,
    LatchTimeout,
    LatchUnavailable,
    inventory,
    latch,
    signals,
)
from django_latch.heartbeat import heartbeat
from django_latch.stale import clear_stale
from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.integration.aliases import locks_at, timeouts
from tests.integration.calls import A, grant
from tests.integration.until import until

SECRET = "hunter2-s3cret"

OPERATIONS: dict[str, Callable[[], object]] = {
    "try": lambda: latch("job", timeout=0).acquire(),
    "wait": lambda: latch("job", timeout=30).acquire(),
    "try_acquire": lambda: latch("job", timeout=0).try_acquire(),
    "with": lambda: latch("job", timeout=30).__enter__(),
    "decorated": latch("job", timeout=0, on_conflict="skip")(lambda: pytest.fail("it ran")),
    "adopt": lambda: latch("job").adopt(A),
    "inspect": lambda: latch("job").inspect(),
    "count": inventory.count,
    "page": lambda: inventory.page(0, 10),
    "clear_stale": lambda: clear_stale(actor="a test"),
}

every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


def outage(operation: Callable[[], object]) -> LatchUnavailable:
    """The outage that `operation` tells of, which shows no secret anywhere."""
    with pytest.raises(LatchUnavailable) as caught:
        operation()
    error: BaseException | None = caught.value
    shown = "".join(traceback.format_exception(caught.value))
    while error is not None:
        shown += repr(error) + str(error) + repr(error.args)
        error = error.__cause__ or error.__context__
    assert SECRET not in shown
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    return caught.value


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds + 2


@every_operation
def test_nobody_listens(operation: Callable[[], object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with locks_at(f"redis://:{SECRET}@127.0.0.1:{port}/0"), in_time(0):
        assert outage(operation).reason == "connection"


def test_the_host_has_no_address() -> None:
    with locks_at(f"redis://user:{SECRET}@no-such-host.invalid:6379/0", **timeouts(1)), in_time(5):
        assert outage(OPERATIONS["try"]).reason == "connection"


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        yield f"redis://:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/0"


@every_operation
def test_nobody_answers(black_hole: str, operation: Callable[[], object]) -> None:
    with locks_at(black_hole, **timeouts(0.3)), in_time(0.3):
        begun = time.monotonic()
        assert outage(operation).reason == "timeout"
        assert time.monotonic() - begun >= 0.3


def test_a_full_backlog_never_connects() -> None:
    """SYN packets into nowhere: the connect time-out decides."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        address = silent.getsockname()
        crowd = [socket.socket() for _ in range(8)]
        try:
            for each in crowd:
                each.setblocking(False)
                each.connect_ex(address)
            with locks_at(f"redis://127.0.0.1:{address[1]}/0", **timeouts(0.3)), in_time(0.6):
                assert outage(OPERATIONS["try"]).reason == "timeout"
        finally:
            for each in crowd:
                each.close()


def test_the_callers_time_is_spent_before_the_store_answers(black_hole: str) -> None:
    with locks_at(black_hole, **timeouts(5)), in_time(0.3):
        begun = time.monotonic()
        with pytest.raises(LatchTimeout) as spent:
            latch("job", timeout=0.3).acquire()
        assert time.monotonic() - begun >= 0.3
        assert spent.value.reason == "unreachable"
        assert (spent.value.waited or 0) >= 0.3


@pytest.fixture
def paused(valkey_of_its_own: EmbeddedValkey) -> Iterator[EmbeddedValkey]:
    """A server that is paused while connections to it stand."""
    latch("warm up", timeout=0).acquire().release()
    os.kill(valkey_of_its_own.pid, signal.SIGSTOP)
    yield valkey_of_its_own
    os.kill(valkey_of_its_own.pid, signal.SIGCONT)
    until(lambda: not heartbeat.owing)


def test_a_paused_server(paused: EmbeddedValkey) -> None:
    with in_time(2 * 0.5):  # once for the answer, once for a connection that might be better
        assert outage(OPERATIONS["try"]).reason == "timeout"
    with in_time(0.5):
        assert outage(OPERATIONS["wait"]).reason == "timeout"
    with in_time(0.4), pytest.raises(LatchTimeout):
        latch("job", timeout=0.4).acquire()


@latch("report", timeout=0.3, on_conflict="skip")
def skipping() -> None:
    pytest.fail("it ran without the lock")


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: latch("job", timeout=0.3).try_acquire(),
        lambda: asyncio.run(latch("job", timeout=0.3).atry_acquire()),
        lambda: Latch.many("a", "b", timeout=0.3).try_acquire(),
        lambda: asyncio.run(Latch.many("a", "b", timeout=0.3).atry_acquire()),
        skipping,
    ],
    ids=["one", "async", "many", "async many", "decorated"],
)
def test_no_answer_is_not_taken_for_a_lock_that_is_held(
    paused: EmbeddedValkey, attempt: Callable[[], object]
) -> None:
    contended: list[object] = []

    def receiver(**payload: object) -> None:
        contended.append(payload)

    signals.lock_contended.connect(receiver)
    with pytest.raises(LatchTimeout) as error:
        attempt()
    assert error.value.unanswered
    assert contended == []


def test_requests_to_a_paused_server_leave_no_orphan(valkey_of_its_own: EmbeddedValkey) -> None:
    latch("warm up", timeout=0).acquire().release()
    os.kill(valkey_of_its_own.pid, signal.SIGSTOP)
    try:
        for timeout in (0, 0.2, 5):
            with pytest.raises(LatchError):
                latch("job", timeout=timeout).acquire()
    finally:
        os.kill(valkey_of_its_own.pid, signal.SIGCONT)
    until(lambda: latch("job").inspect() is None)
    with latch("job", timeout=5):
        pass


@every_operation
def test_a_wrong_password(
    valkey_of_its_own: EmbeddedValkey,
    operation: Callable[[], object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with redis.Redis.from_url(valkey_of_its_own.url) as client:
        client.config_set("requirepass", "another")
    url = valkey_of_its_own.url.replace("redis://", f"redis://:{SECRET}@")
    with locks_at(f"{url}/0"), in_time(0):
        error = outage(operation)
    assert error.reason == "auth"
    assert "password" in str(error)
    assert SECRET not in caplog.text


def test_no_password_where_one_is_asked_for(valkey_of_its_own: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey_of_its_own.url) as client:
        client.config_set("requirepass", SECRET)
    with locks_at(f"{valkey_of_its_own.url}/0"), in_time(0):
        assert outage(OPERATIONS["try"]).reason == "auth"


def test_a_user_without_the_rights(valkey_of_its_own: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey_of_its_own.url) as client:
        client.acl_setuser(
            "weak",
            enabled=True,
            passwords=[f"+{SECRET}"],
            commands=["+ping", "+hello", "+client", "+select"],
        )
    url = valkey_of_its_own.url.replace("redis://", f"redis://weak:{SECRET}@")
    with locks_at(f"{url}/0"), in_time(0):
        assert outage(OPERATIONS["try"]).reason == "auth"


def test_a_replica_is_no_place_for_locks(valkey_of_its_own: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey_of_its_own.url) as client:
        client.replicaof("127.0.0.1", 1)  # of a primary that is gone
        assert outage(OPERATIONS["try"]).reason == "readonly"
        assert outage(OPERATIONS["wait"]).reason == "readonly"
        client.replicaof("NO", "ONE")
        with latch("job", timeout=0):  # promoted: the same process goes on
            pass


def test_a_database_that_does_not_exist() -> None:
    with locks_at(servers.url(999)), in_time(0):
        assert outage(OPERATIONS["try"]).reason in ("refused", "connection")


def test_something_that_is_no_redis() -> None:
    """It answers, in another language."""
    with socket.create_server(("127.0.0.1", 0)) as web:

        def answer() -> None:
            with suppress(OSError):  # until it is shut down, whoever still asks
                while True:
                    connection, _ = web.accept()
                    with connection, suppress(ConnectionError):  # that one has gone
                        connection.recv(4096)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        with locks_at(f"redis://127.0.0.1:{web.getsockname()[1]}/0", **timeouts(1)), in_time(2):
            assert outage(OPERATIONS["try"]).reason
        web.shutdown(socket.SHUT_RDWR)
        answering.join(5)
        assert not answering.is_alive()


def test_a_restarted_server_is_found_again(valkey_of_its_own: EmbeddedValkey) -> None:
    with latch("job", timeout=0):
        pass
    valkey_of_its_own.stop()
    assert outage(OPERATIONS["try"]).reason == "connection"
    valkey_of_its_own.start()
    with latch("job", timeout=0), pytest.raises(LatchError):
        latch("job", timeout=0).acquire()
    until(lambda: not heartbeat.owing)


def test_idle_connections_that_the_server_has_closed_are_not_noticed(raw: redis.Redis) -> None:
    for _ in range(3):
        with latch("job", timeout=0):
            raw.client_kill_filter(_type="normal", skipme=True)
        raw.client_kill_filter(_type="normal", skipme=True)
    with latch("job", timeout=0):
        pass  # and the next test finds none of them


def test_an_outage_is_neither_success_nor_busy() -> None:
    grant(A)
    assert latch("job", timeout=0).try_acquire() is None
    with locks_at("redis://127.0.0.1:1/0"), pytest.raises(LatchUnavailable):
        latch("job", timeout=0).try_acquire()


def test_ignoring_exceptions_in_the_cache_never_applies() -> None:
    with locks_at("redis://127.0.0.1:1/0", OPTIONS={"IGNORE_EXCEPTIONS": True}):
        outage(OPERATIONS["try"])
