"""Threads of one process: one asks for a value, and the others wait for its turn."""

from __future__ import annotations

import os
import time

import pytest
import redis

from django_latch import LatchTimeout, LatchUnavailable, snapshot
from django_latch.core.calls import Work
from django_latch.core.timing import now
from django_latch.snapshots import Snapshot
from django_latch.snapshots.flow import Obtaining
from django_latch.snapshots.turns import Turn, turns
from django_latch.store.connections import store
from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.integration import audit
from tests.integration.aliases import locks_at, timeouts
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, together
from tests.snapshot.test_election import waiting
from tests.snapshot.test_waiting import facts


def going(shared: Snapshot) -> Turn | None:
    """The turn of a snapshot, if any."""
    place = shared.place()
    return turns._turns.get((*place.key, place.wanted.shape))


def publish_elsewhere(raw: redis.Redis) -> None:
    """A value of 7, as another process publishes it."""
    raw.hset(audit.key("S", LOCK), mapping={"v:": "7", "m": facts(raw)})
    raw.xadd(audit.key("N", LOCK), {"at": "0"})
    raw.pexpire(audit.key("N", LOCK), 60_000)


def test_one_thread_computes_one_listens_and_the_others_ask_nothing(
    raw: redis.Redis, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10, ttl=60)  # no renewal meanwhile
    with sweep.held():
        first = call(shared.report, sweep)
        sweep.await_begin()
        until(lambda: going(shared) is None)
        asked: list[str] = []  # not counted at the server, to which the heartbeat may owe something
        at = store()
        run = at.call
        monkeypatch.setattr(at, "call", lambda call: asked.append(call.verb) or run(call))
        others = [call(shared.report, sweep) for _ in range(20)]
        until(lambda: waiting(raw) == 1)
        assert asked == ["snapshot_read"], "by the one that listens"
    assert first.result(10).outcome == "miss"
    # A thread that is late finds the value: its outcome is a hit.
    assert [one.result(10).value for one in others] == [1] * 20
    assert sweep.runs == 1


def test_a_value_from_elsewhere_reaches_all_before_the_compute_here_ends(
    raw: redis.Redis, sweep: Sweep
) -> None:
    """As that of a process that took over from this one, which is slow."""
    shared = snapshot(NAME, fresh_for=60, wait=10, ttl=60)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        others = [call(shared.get, sweep) for _ in range(5)]
        until(lambda: waiting(raw) == 1)
        publish_elsewhere(raw)
        assert [other.result(10) for other in others] == [7] * 5
    first.result(10)


def test_a_compute_that_fails_is_followed_by_one_other(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)

    def broken() -> int:
        sweep()
        raise ValueError("broken")

    with sweep.held():
        first = call(shared.get, broken)
        sweep.await_begin()
        others = [call(shared.get, sweep) for _ in range(8)]
    assert isinstance(first.exception(10), ValueError)
    assert [other.result(10) for other in others] == [2] * 8
    assert sweep.runs == 2


def test_each_waits_for_no_longer_than_its_own_budget(sweep: Sweep) -> None:
    patient, hasty = (snapshot(NAME, fresh_for=60, wait=wait) for wait in (10, 0.4))
    with sweep.held():
        first = call(patient.get, sweep)
        sweep.await_begin()
        second = call(patient.get, sweep)
        until(lambda: going(patient) is not None)
        began = time.monotonic()
        with pytest.raises(LatchTimeout, match="another caller computes it"):
            hasty.get(sweep)
        assert 0.2 < time.monotonic() - began < 0.4 + 2
    assert (first.result(10), second.result(10)) == (1, 1)


def test_who_does_not_wait_waits_for_no_turn_either(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        second = call(shared.get, sweep)
        until(lambda: going(shared) is not None)
        began = time.monotonic()
        assert not shared.replace(wait=0, on_busy="pending").get(sweep)
        assert time.monotonic() - began < 2
    assert (first.result(10), second.result(10)) == (1, 1)


def test_all_hear_of_an_outage_that_one_has_met(
    valkey_of_its_own: EmbeddedValkey, raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=15)
    with sweep.held():
        first = call(shared.report, sweep)
        sweep.await_begin()
        others = [call(shared.get, sweep) for _ in range(5)]
        plain = redis.Redis.from_url(valkey_of_its_own.url, decode_responses=True)
        until(lambda: waiting(plain) == 1)
        plain.close()
        valkey_of_its_own.stop()
        assert all(isinstance(other.exception(10), LatchUnavailable) for other in others)
    assert first.result(10).value == 1


def test_a_turn_ends_with_a_call_that_is_given_up(sweep: Sweep) -> None:
    place = snapshot(NAME).place()
    flow = Obtaining(place, sweep, blocks=True).run()
    step = flow.send(place.store.glance(next(flow)))
    assert going(snapshot(NAME)) is not None
    flow.close()
    assert going(snapshot(NAME)) is None
    assert not isinstance(step, Work)


def test_a_turn_that_was_left_behind_keeps_nobody_for_long(sweep: Sweep) -> None:
    """As by a thread that is interrupted where nothing can be tidied up."""
    shared = snapshot(NAME, fresh_for=60, wait=10)
    key = (*shared.place().key, "")
    left_behind = Turn(now() + 0.3)
    assert turns.begin(key, left_behind) is left_behind
    began = time.monotonic()
    assert [call(shared.get, sweep).result(10) for _ in range(3)] == [1] * 3
    assert time.monotonic() - began < 0.3 + 2
    assert going(shared) is None


def test_a_shape_that_is_there_waits_for_no_other(sweep: Sweep) -> None:
    """A version of the project that knows one more shape waits for that one only."""
    old = snapshot(NAME, fresh_for=60, wait=10, shapes={"short": str})
    assert old.get(sweep) == 1
    new = old.replace(shapes={"short": str, "long": repr}, shape="long")
    with sweep.held():
        first = call(new.get, sweep)
        sweep.await_begin()
        second = call(new.get, sweep)
        until(lambda: going(new) is not None)
        began = time.monotonic()
        assert old.shaped("short").get(sweep) == "1"
        assert time.monotonic() - began < 2
    assert {first.result(10), second.result(10)} == {"2"}


def test_many_who_wait_in_vain_are_told_of_contention(sweep: Sweep) -> None:
    """None of them has heard nothing, though most have no time left for a question."""
    shared = snapshot(NAME, fresh_for=60, wait=0.7)
    with locks_at(servers.url(), **timeouts(0.5)), sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        got = together(40, shared.get, sweep)
        assert {type(one) for one in got} == {LatchTimeout}
        assert all("another caller computes it" in str(one) for one in got)
    assert first.result(10) == 1


def test_who_computes_with_a_permit_keeps_nobody_waiting(raw: redis.Redis, sweep: Sweep) -> None:
    hasty = snapshot(NAME, fresh_for=60, wait=0.3, on_busy="compute")
    patient = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        first = call(patient.get, sweep)
        sweep.await_begin()
        second = call(hasty.get, sweep)
        sweep.await_begin()
        third = call(patient.get, sweep)
        until(lambda: waiting(raw) == 1)
        publish_elsewhere(raw)
        assert third.result(5) == 7
    first.result(10), second.result(10)


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    key = (1, "of the parent", "")
    turn = Turn(now() + 60)
    assert turns.begin(key, turn) is turn
    child = os.fork()
    if child == 0:
        os._exit(turns._turns.get(key) is not None)
    assert os.waitpid(child, 0)[1] == 0
    turns.end(key, turn)
    assert turns._turns.get(key) is None
