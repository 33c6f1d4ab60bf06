"""Who computes: one, a living one, and the newest."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest
import redis

from django_latch import LatchDeadlock, current_lease, inventory, snapshot
from django_latch.core import snapshot as calls
from django_latch.core.calls import Glance, Work
from django_latch.core.tokens import new_token
from django_latch.snapshots.flow import Obtaining
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.aliases import locks_at
from tests.integration.programs import Program, program
from tests.integration.proxy import Proxy, proxy
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, elected, together

#: A program that computes when it is told to, and says what it got.
CALLER = """
from tests.snapshot.sweeps import Sweep
from pathlib import Path
from django_latch import snapshot
sweep = Sweep(Path(os.environ["SWEEPS"]))
options = eval(os.environ["OPTIONS"])
def compute():
    value = sweep()
    say("computing")
    if os.environ.get("HELD"): hear()
    return value
say("ready")
hear()
report = snapshot("health", **options).report(compute)
say(report.outcome, report.value, report.fence > 0)
"""


def caller(sweep: Sweep, held: bool = False, **options: object) -> object:
    env = {"SWEEPS": str(sweep.log), "OPTIONS": repr(options), "HELD": "1" if held else ""}
    return program(CALLER, **env)


@pytest.fixture
def refresher(sweep: Sweep) -> Iterator[Program]:
    """A process that computes until it is told to go on; its lease is 1 s."""
    with caller(sweep, held=True, fresh_for=60, ttl=1) as one:
        one.expect("ready")
        one.say("go")
        one.expect("computing")
        yield one


def test_s3_one_compute_for_all_cold_callers_of_a_process(raw: redis.Redis, sweep: Sweep) -> None:
    sweep.takes = 0.3
    shared = snapshot(NAME, fresh_for=60, wait=10)
    assert together(30, shared.get, sweep) == [1] * 30
    assert sweep.runs == 1
    audit.assert_free(raw, LOCK)


def test_s3_one_compute_for_all_cold_callers_of_many_processes(sweep: Sweep) -> None:
    sweep.takes = 0.3
    code = CALLER.replace(
        'report = snapshot("health", **options).report(compute)\n',
        "from tests.snapshot.sweeps import together\n"
        "sweep.takes = 0.3\n"
        'got = together(8, snapshot("health", **options).get, sweep)\n'
        'say(*got)\nreport = snapshot("health", **options).report(compute)\n',
    )
    env = {"SWEEPS": str(sweep.log), "OPTIONS": repr({"fresh_for": 60, "wait": 10})}
    with program(code, **env) as one, program(code, **env) as two, program(code, **env) as three:
        for each in (one, two, three):
            each.expect("ready")
        for each in (one, two, three):
            each.say("go")
        for each in (one, two, three):
            each.expect(*[1] * 8)
    assert sweep.runs == 1


@pytest.mark.usefixtures("apart")
def test_s7_a_dead_refresher_is_replaced_by_one_when_its_lease_ends(
    raw: redis.Redis, sweep: Sweep, refresher: Program
) -> None:
    shared = snapshot(NAME, fresh_for=60, ttl=1, wait=10)
    waiters = [call(shared.report, sweep) for _ in range(5)]
    until(lambda: waiting(raw) == 5)
    (record,) = elected(raw).values()
    refresher.kill()
    ended = time.monotonic()
    left = max(r.exp for r in elected(raw).values()) / 1000 - audit.now(raw) / 1000
    reports = [waiter.result(20) for waiter in waiters]
    took = time.monotonic() - ended
    assert left - 0.05 <= took < left + 2
    assert sorted(report.outcome for report in reports) == ["takeover", *["wait"] * 4]
    assert {report.value for report in reports} == {2}
    assert sweep.runs == 2, "one more, whoever waited"
    assert min(report.fence for report in reports) > record.fence


def waiting(raw: redis.Redis) -> int:
    """How many connections wait for news."""
    return sum(c["cmd"] == "xread" and "b" in c["flags"] for c in raw.client_list())


def test_s8_a_living_refresher_is_renewed(
    raw: redis.Redis, sweep: Sweep, refresher: Program
) -> None:
    (begun,) = elected(raw).values()
    until(lambda: max(r.exp for r in elected(raw).values()) > begun.exp + 1500, within=10)
    assert (
        snapshot(NAME, fresh_for=60, wait=0, on_busy="pending").report(sweep).outcome == "pending"
    )
    refresher.say("done")
    refresher.expect("miss", 1, True)
    assert sweep.runs == 1


def test_s8_for_a_maximum_and_a_lost_lease_publishes_nothing(
    raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, ttl=0.5, max_hold=1, wait=10)
    with sweep.held():
        slow = call(shared.report, sweep)
        sweep.await_begin()
        until(lambda: not any(r.exp > audit.now(raw) for r in elected(raw).values()), within=5)
        assert shared.get(lambda: "of the next") == "of the next"
    report = slow.result(10)
    assert (report.value, report.fence) == (1, 0), "its caller gets it, and nobody else"
    assert shared.get(sweep) == "of the next"


def test_s9_a_slow_former_owner_publishes_nothing(
    raw: redis.Redis, sweep: Sweep, refresher: Program
) -> None:
    """Stopped for longer than its lease: another computes, then it goes on to its end."""
    refresher.signal(signal.SIGSTOP)
    until(lambda: not any(r.exp >= audit.now(raw) for r in elected(raw).values()), within=10)
    shared = snapshot(NAME, fresh_for=60, ttl=1, wait=10)
    assert shared.report(lambda: "newer").outcome == "takeover"
    fence = shared.peek().fence
    refresher.signal(signal.SIGCONT)
    refresher.say("done")
    refresher.expect("miss", 1, False)
    report = shared.peek()
    assert (report.value, report.fence) == ("newer", fence)


def test_s9_an_older_fence_overwrites_nothing_whatever_its_lease(raw: redis.Redis) -> None:
    """As a caller with a permit, who has no election to lose."""
    at, wanted = store(), snapshot(NAME).place().wanted
    snapshot(NAME, lambda: "newer")
    fence = snapshot(NAME).peek().fence
    done = at.call(calls.publish(wanted, {"": b"older"}, "", fence - 1, 1))
    assert (done.word, done.reason) == ("refused", "superseded")
    assert snapshot(NAME).peek().value == "newer"


def test_publishing_twice_is_publishing_once(raw: redis.Redis) -> None:
    at, wanted, token = store(), snapshot(NAME).place().wanted, new_token()
    seen = at.call(calls.read(wanted, "{}", token))
    assert at.call(calls.read(wanted, "{}", token)).holder == seen.holder, "the same election"
    call_ = calls.publish(wanted, {"": b"7"}, token, seen.holder, 1)
    assert at.call(call_).word == "published"
    assert at.call(call_).word == "published"
    assert at.call(calls.read(wanted, "{}", token)).state == "hit"
    raw.delete(audit.key("S", LOCK))
    assert at.call(calls.read(wanted, "{}", token)).role == "ended", "a late copy elects nobody"
    audit.assert_free(raw, LOCK)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_s10_the_lock_is_free_after_every_exception(
    error: BaseException, raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)

    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        shared.get(fail)
    assert raised.value is error
    audit.assert_free(raw, LOCK)
    assert shared.get(sweep) == 1


@pytest.fixture
def way() -> Iterator[Proxy]:
    with proxy() as made, locks_at(made.url):
        yield made


@pytest.mark.parametrize("fault", ["close", "swallow"])
def test_s10_a_lost_reply_of_the_election_leaves_no_orphan(
    fault: str, way: Proxy, raw: redis.Redis, sweep: Sweep
) -> None:
    way.arm("snapshot_read", fault)  # type: ignore[arg-type]
    options = {"OPTIONS": {"SOCKET_TIMEOUT": 0.3}}
    with locks_at(way.url, **options):
        assert snapshot(NAME, sweep, fresh_for=60, wait=10) == 1
    assert way.spent
    assert sweep.runs == 1
    audit.assert_free(raw, LOCK)


def test_s10_when_every_reply_is_lost_the_election_is_given_up(
    way: Proxy, raw: redis.Redis, sweep: Sweep
) -> None:
    way.arm("snapshot_read", "close", times=2)
    with pytest.raises(Exception, match="no usable answer"):
        snapshot(NAME, sweep, fresh_for=60, wait=10)
    until(lambda: elected(raw) == {})
    assert sweep.runs == 0
    with locks_at(way.url, KEY_PREFIX=""):
        assert snapshot(NAME, sweep, fresh_for=60, wait=10) == 1


def test_s10_a_copy_of_the_election_that_comes_late_elects_nobody(
    way: Proxy, raw: redis.Redis, sweep: Sweep
) -> None:
    way.arm("snapshot_read", "hold")
    assert snapshot(NAME, sweep, fresh_for=60, wait=10) == 1
    raw.delete(audit.key("S", LOCK))
    way.deliver()
    until(lambda: elected(raw) == {})
    audit.assert_free(raw, LOCK)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_s10_a_call_that_is_closed_leaves_nobody_elected(
    steps: int, raw: redis.Redis, sweep: Sweep
) -> None:
    """As an interpreter that ends does with a coroutine: nothing can be sent any more."""
    place = snapshot(NAME).place()
    flow = Obtaining(place, sweep).run()
    step = next(flow)
    for _ in range(steps - 1):
        step = flow.send(
            place.store.glance(step) if isinstance(step, Glance) else place.store.call(step)
        )
    assert (steps == 3) is isinstance(step, Work)
    assert len(elected(raw)) == (steps == 3)
    flow.close()
    until(lambda: elected(raw) == {})
    assert sweep.runs == 0


def test_s30_a_snapshot_that_asks_for_itself_is_told_so(raw: redis.Redis) -> None:
    inner, outer = snapshot("inner", wait=5), snapshot("outer", wait=5)
    begun = time.monotonic()
    with pytest.raises(LatchDeadlock, match="'outer' asks for 'inner' asks for 'outer'") as told:
        outer.get(lambda: inner.get(lambda: outer.get(lambda: 1)))
    assert told.value.cycle == [
        {"holds": "outer", "waits": "inner"},
        {"holds": "inner", "waits": "outer"},
    ]
    assert time.monotonic() - begun < 3
    assert outer.get(lambda: inner.get(lambda: 7)) == 7, "nested ones are no circle"


def test_s30_a_stale_value_of_itself_is_given(raw: redis.Redis) -> None:
    shared = snapshot(NAME, fresh_for=0.05, keep_for=60)
    assert shared.get(lambda: 1) == 1
    time.sleep(0.1)
    assert shared.get(lambda: shared.get(lambda: 0) + 1) == 2


def test_s31_invalidate_makes_what_is_being_computed_unpublishable(
    raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        old = call(shared.report, sweep)
        sweep.await_begin()
        shared.invalidate()
        assert shared.get(lambda: "after it") == "after it", "computed at once, not waited for"
    report = old.result(10)
    assert (report.value, report.fence) == (1, 0)
    assert shared.get(sweep) == "after it"
    shared.invalidate()
    assert shared.peek().state == "miss"
    audit.assert_free(raw, LOCK)


def test_s31_a_waiter_gets_what_comes_after_the_invalidation(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        old = call(shared.report, sweep)
        sweep.await_begin()
        waiter = call(shared.report, lambda: "new")
        time.sleep(0.1)
        shared.invalidate()
        assert waiter.result(10).value == "new"
    assert old.result(10).value == 1


def test_the_refresher_is_a_holder_like_any_other(raw: redis.Redis, sweep: Sweep) -> None:
    """Seen in lists, and freed by an operator: the next caller computes at once."""
    seen: list[int] = []

    def compute() -> int:
        lease = current_lease()
        assert lease is not None
        seen.append(lease.fence)
        return sweep()

    shared = snapshot(NAME, fresh_for=60, wait=10)
    with sweep.held():
        old = call(shared.report, compute)
        sweep.await_begin()
        lock = inventory.get(LOCK)
        assert lock is not None
        assert lock.holder is not None
        assert lock.holder.owner.label == f"computes {NAME}"
        assert seen == [lock.holder.fence]
        inventory.clear(
            LOCK,
            fence=lock.holder.fence,
            fingerprint=lock.holder.fingerprint,
            reason="stuck",
            actor="ops",
        )
        assert shared.get(lambda: "next") == "next"
    assert old.result(10).fence == 0
    assert threading.active_count() < 40
