"""The connections that script calls borrow."""

from __future__ import annotations

import threading
import time

import pytest
from redis.exceptions import TimeoutError as RedisTimeoutError

from django_latch.store.pool import Connections


class Connection:
    """Remembers whether it was closed, and by whom it is used."""

    def __init__(self) -> None:
        self.closed = 0
        self.user = threading.Lock()

    def disconnect(self) -> None:
        assert not self.user.locked(), "closed while another used it"
        self.closed += 1


def pool(most: int = 3, make: object = Connection) -> Connections:
    return Connections(make, most, timeout=0.05)  # type: ignore[arg-type]


def test_the_connection_used_last_is_lent_first() -> None:
    connections = pool()
    first, second = connections.borrow(1), connections.borrow(1)
    connections.back(first)
    connections.back(second)
    assert connections.borrow(1) is second
    assert connections.borrow(1) is first


def test_no_more_are_lent_than_allowed() -> None:
    connections = pool(most=2)
    first, second = connections.borrow(1), connections.borrow(1)
    begun = time.monotonic()
    with pytest.raises(RedisTimeoutError, match="2 are lent"):
        connections.borrow(1)
    assert time.monotonic() - begun >= 0.05
    connections.drop(second)
    connections.back(first)
    assert connections.borrow(1) is first


def test_a_borrower_waits_for_one_that_comes_back() -> None:
    connections = Connections(Connection, 1, timeout=5)  # type: ignore[arg-type]
    first = connections.borrow(1)
    threading.Timer(0.05, connections.back, [first]).start()
    assert connections.borrow(5) is first


def test_a_callers_own_patience_may_be_shorter() -> None:
    connections = Connections(Connection, 1, timeout=60)  # type: ignore[arg-type]
    connections.borrow(1)
    begun = time.monotonic()
    with pytest.raises(RedisTimeoutError):
        connections.borrow(0.01)
    assert time.monotonic() - begun < 2


def test_after_an_error_the_idle_ones_are_closed_too() -> None:
    connections = pool()
    first, second = connections.borrow(1), connections.borrow(1)
    connections.back(first)
    connections.drop(second)
    assert (first.closed, second.closed) == (1, 1)  # type: ignore[attr-defined]
    assert connections.borrow(1) not in (first, second)


def test_a_connection_that_cannot_be_made_costs_no_place() -> None:
    def fail() -> Connection:
        raise TypeError("a wrong option")

    connections = pool(most=2, make=fail)
    for _ in range(5):
        with pytest.raises(TypeError, match="a wrong option"):
            connections.borrow(1)


def test_threads_that_meet_errors_never_close_each_others_connections() -> None:
    connections = Connections(Connection, 4, timeout=5)  # type: ignore[arg-type]
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for turn in range(300):
                lent = connections.borrow(5)
                with lent.user:  # type: ignore[attr-defined]
                    pass
                (connections.drop if (turn + seed) % 7 == 0 else connections.back)(lent)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for _ in range(4):  # every place is there again
        connections.borrow(1)


def test_a_forked_child_begins_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = pool(most=1)
    inherited = connections.borrow(1)
    connections.back(inherited)
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert connections.borrow(1) is not inherited
    assert inherited.closed == 0  # type: ignore[attr-defined]
