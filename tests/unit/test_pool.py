"""The connections that script calls borrow."""

from __future__ import annotations

import threading
import time
import weakref

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
    older, later = first.connection, second.connection
    connections.back(first)
    connections.back(second)
    assert connections.borrow(1).connection is later
    assert connections.borrow(1).connection is older


def test_no_more_are_lent_than_allowed() -> None:
    connections = pool(most=2)
    first, second = connections.borrow(1), connections.borrow(1)
    begun = time.monotonic()
    with pytest.raises(RedisTimeoutError, match="2 are lent"):
        connections.borrow(1)
    assert time.monotonic() - begun >= 0.05
    left = first.connection
    connections.drop(second)
    connections.back(first)
    assert connections.borrow(1).connection is left


def test_a_borrower_waits_for_one_that_comes_back() -> None:
    connections = Connections(Connection, 1, timeout=5)  # type: ignore[arg-type]
    first = connections.borrow(1)
    threading.Timer(0.05, connections.back, [first]).start()
    assert connections.borrow(5) is first  # there is only one permit


def test_a_callers_own_patience_may_be_shorter() -> None:
    connections = Connections(Connection, 1, timeout=60)  # type: ignore[arg-type]
    lent = connections.borrow(1)
    begun = time.monotonic()
    with pytest.raises(RedisTimeoutError):
        connections.borrow(0.01)
    assert time.monotonic() - begun < 2
    connections.back(lent)


def test_after_an_error_the_idle_ones_are_closed_too() -> None:
    connections = pool()
    first, second = connections.borrow(1), connections.borrow(1)
    were = first.connection, second.connection
    connections.back(first)
    connections.drop(second)
    assert [each.closed for each in were] == [1, 1]  # type: ignore[attr-defined]
    assert connections.borrow(1).connection not in were


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
                with lent.connection.user:  # type: ignore[attr-defined]
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
    again = [connections.borrow(1) for _ in range(4)]  # every place is there again
    assert len({permit.connection for permit in again}) == 4


def test_a_forked_child_begins_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = pool(most=1)
    permit = connections.borrow(1)
    inherited = permit.connection
    connections.back(permit)
    monkeypatch.setattr("os.getpid", lambda: -1)
    fresh = connections.borrow(1)
    assert fresh.connection is not inherited
    assert inherited.closed == 0  # type: ignore[attr-defined]
    del permit  # the parent's last permit is no permit of the child
    with pytest.raises(RedisTimeoutError):
        connections.borrow(1)


def test_what_is_lost_is_there_again_at_once() -> None:
    connections = pool(most=4)
    lent = [connections.borrow(1) for _ in range(4)]
    with pytest.raises(RedisTimeoutError):
        connections.borrow(1)
    del lent[1:]  # their threads were interrupted
    lent += [connections.borrow(0.01) for _ in range(3)]
    with pytest.raises(RedisTimeoutError):
        connections.borrow(1)
    connections.back(lent.pop())  # returned, it is there once and not twice
    lent.append(connections.borrow(1))
    with pytest.raises(RedisTimeoutError):
        connections.borrow(1)


def test_a_pool_that_is_dropped_is_gone() -> None:
    connections = pool()
    gone = weakref.ref(connections)
    connections.back(connections.borrow(1))
    del connections
    assert gone() is None
