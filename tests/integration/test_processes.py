"""Processes that are paused, killed, forked, or end with a lock in their hands."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest
import redis

from django_latch import LatchBusy, latch
from example_project.valkey import EmbeddedValkey
from tests.integration import audit
from tests.integration.programs import FORKS, PATIENCE, program
from tests.integration.until import until

PAUSED = """
lease = latch("job", timeout=0, ttl=0.8).acquire()
say("held", lease.fence)
hear()
for action in (lease.ensure_held, lease.renew, lease.release, lease.detach):
    try:
        action()
        say("allowed")
    except (LatchLost, LatchNotHeld) as error:
        say(type(error).__name__, error.reason)
say(lease.remaining())
"""


def test_a_holder_paused_past_its_lease_is_refused_and_harms_nobody(raw: redis.Redis) -> None:
    with program(PAUSED) as holder:
        fence = int(holder.hear().split()[1])
        holder.signal(signal.SIGSTOP)
        begun = time.monotonic()
        until(lambda: latch("job", timeout=0).inspect() is None, within=0.8 + 2)
        assert time.monotonic() - begun > 0.2
        with latch("job", timeout=0, ttl=5) as other:
            assert other.fence > fence
            holder.say("go on")
            holder.signal(signal.SIGCONT)
            heard = [holder.hear() for _ in range(5)]
            assert [line.split()[0] for line in heard[:4]] == ["LatchLost", *["LatchNotHeld"] * 3]
            assert len({line.split()[1] for line in heard[:4]}) == 1
            assert heard[0].split()[1] in ("paused", "expired", "taken")
            assert heard[4] == "0.0"
            assert holder.end() == 0
            other.ensure_held()
            other.renew()
            assert audit.listed(raw, "job") == [other.token]
    audit.assert_free(raw, "job")


def test_a_third_is_refused_after_the_first_one_has_gone_on_to_its_end(raw: redis.Redis) -> None:
    """B holds; A wakes up and ends as if it still held; C must be refused."""
    with program(PAUSED) as first:
        first.hear()
        first.signal(signal.SIGSTOP)
        until(lambda: latch("job", timeout=0).inspect() is None, within=0.8 + 2)
        with latch("job", timeout=0, ttl=5):
            first.say("go on")
            first.signal(signal.SIGCONT)
            first.end()
            with pytest.raises(LatchBusy):
                latch("job", timeout=0).acquire()


GIL = """
import ctypes, time
held = ctypes.PyDLL(None).usleep  # PyDLL keeps the interpreter's lock: no other thread runs
lease = latch("job", timeout=0, ttl=1).acquire()
held(900_000)
lease.ensure_held()
lease.renew()
known = lease._deadline
while lease._deadline == known: time.sleep(0.01)  # until the heartbeat has renewed it, too
lease.ensure_held()
lease.release()
say("kept")
"""


def test_a_call_that_stops_all_threads_right_after_the_grant_loses_nothing(
    raw: redis.Redis,
) -> None:
    with program(GIL) as holder:
        holder.expect("kept")
        assert holder.end() == 0
    assert audit.kinds(raw, "job") == ["acquired", "released"]


def test_a_call_that_stops_all_threads_for_too_long_is_told(raw: redis.Redis) -> None:
    with program(
        """
        import ctypes
        lease = latch("job", timeout=0, ttl=0.3).acquire()
        ctypes.PyDLL(None).usleep(700_000)
        say(lease.lost)
        try:
            lease.ensure_held()
        except LatchLost as error:
            say(error.reason)
        """
    ) as holder:
        reason = holder.hear()
        assert reason in ("paused", "expired")
        holder.expect(reason)
        assert holder.end() == 0


FORK = """
import warnings
warnings.simplefilter("ignore")
warnings.filterwarnings("error", message="unreleased")
lease = latch("job", timeout=0, ttl=5).acquire()
with latch("scope", timeout=0, ttl=5) as inner:
    pid = os.fork()
    if pid == 0:
        say("child", lease.lost, inner.lost, lease.remaining())
        for action in (lease.ensure_held, lease.renew, lease.release):
            try:
                action()
                say("allowed")
            except (LatchLost, LatchNotHeld) as error:
                say(error.reason)
        with latch("own", timeout=0, ttl=0.6) as own:
            time.sleep(1)
            own.ensure_held()
            say("own", latch("job", timeout=0).try_acquire())
    else:
        os.waitpid(pid, 0)
        lease.ensure_held()
        inner.ensure_held()
        lease.renew()
        say("parent holds")
if pid == 0:
    del lease, inner
    sys.exit()
lease.release()
say("parent released")
"""


def test_a_forked_child_owns_nothing_of_its_parent(raw: redis.Redis) -> None:
    with program(FORK) as family:
        family.expect("child never_held never_held 0.0")
        for _ in range(3):
            family.expect("never_held")
        until(lambda: audit.records(raw, "own"))
        assert audit.records(raw, "job")
        assert audit.records(raw, "scope")
        family.expect("own None")
        family.expect("parent holds")
        family.expect("parent released")
        assert family.end() == 0
        assert family.errors == []
    for name in ("job", "scope", "own"):
        audit.assert_free(raw, name)
    assert audit.kinds(raw, "job") == ["acquired", "refused", "released"]
    assert audit.kinds(raw, "scope") == ["acquired", "released"]


def _in_child(inherited: object, answers: object) -> None:
    import django

    django.setup()
    with latch("child", timeout=0, ttl=5) as lease:
        answers.put((lease.fence, latch("job", timeout=0).try_acquire() is None))  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing(raw: redis.Redis, method: str) -> None:
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    with latch("job", timeout=0, ttl=5) as lease:
        child = context.Process(target=_in_child, args=(None, answers))
        child.start()
        fence, refused = answers.get()
        child.join(PATIENCE)
        assert child.exitcode == 0
        assert fence > lease.fence
        assert refused
        lease.ensure_held()
    audit.assert_nothing_held(raw)


FORKING = f"""
{FORKS}
lease = latch("job", ttl=20).acquire()
say("held")
hear()
say(lease.held_here)
"""


def test_a_child_that_ends_while_the_lock_is_taken_frees_nothing(raw: redis.Redis) -> None:
    """A receiver of the signal forks, and the child's exit goes through `acquire`."""
    with program(FORKING) as parent:
        assert parent.hear() == "held"
        time.sleep(0.2)  # a debt of the child's would have been sent by now
        with pytest.raises(LatchBusy):
            latch("job", timeout=0).acquire()
        parent.say("go on")
        assert parent.hear() == "True"


WAITING_AT_EXIT = """
import threading
from django_latch.heartbeat import heartbeat

first, told = latch("job", ttl=20).acquire(), []

def wait():
    with latch("job", ttl=20, timeout=10) as lease:
        told.append(lease.held_here)

waiter = threading.Thread(target=wait, daemon=True)
waiter.start()
while not latch("job").inspect().waiters:
    time.sleep(0.01)
heartbeat.close()  # as at exit: it frees the first
waiter.join(8)
say(*told)
"""


def test_a_waiter_whose_turn_comes_at_the_exit_holds_and_frees(raw: redis.Redis) -> None:
    with program(WAITING_AT_EXIT) as alone:
        assert alone.hear() == "True"
        audit.assert_free(raw, "job")


def test_sys_exit_with_held_locks_frees_them_at_once(raw: redis.Redis) -> None:
    with program(
        """
        leases = [latch(f"job {n}", timeout=0, ttl=600).acquire() for n in range(300)]
        say("held")
        hear()
        sys.exit(3)
        """
    ) as holder:
        holder.expect("held")
        assert len(audit.locks(raw)) == 300
        begun = time.monotonic()
        holder.say("go on")
        assert holder.end() == 3
        assert time.monotonic() - begun < 1 + 2
    audit.assert_nothing_held(raw)


def test_an_unhandled_error_frees_too(raw: redis.Redis) -> None:
    with program(
        """
        lease = latch("job", timeout=0, ttl=600).acquire()
        raise ZeroDivisionError
        """
    ) as holder:
        assert holder.end() == 1
        assert "ZeroDivisionError" in "".join(holder.errors)
    audit.assert_free(raw, "job")


def test_a_thread_of_its_own_does_not_keep_the_process(raw: redis.Redis) -> None:
    with program(
        """
        import threading
        got = []
        thread = threading.Thread(target=lambda: got.append(latch("job", timeout=0).acquire()))
        thread.start()
        thread.join()
        say("held")
        """
    ) as holder:
        holder.expect("held")
        begun = time.monotonic()
        assert holder.end() == 0
        assert time.monotonic() - begun < 1 + 2
    audit.assert_free(raw, "job")


def test_a_server_that_does_not_answer_delays_the_exit_only_a_little(
    valkey_of_its_own: EmbeddedValkey,
) -> None:
    with program(
        """
        leases = [latch(f"job {n}", timeout=0, ttl=600).acquire() for n in range(700)]
        say("held")
        hear()
        """,
        LATCH_TEST_REDIS_URL=valkey_of_its_own.url,
    ) as holder:
        holder.expect("held")
        os.kill(valkey_of_its_own.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            holder.say("go on")
            assert holder.end() == 0
            assert time.monotonic() - begun < 1 + 2
        finally:
            os.kill(valkey_of_its_own.pid, signal.SIGCONT)


GEVENT = """
from gevent import monkey
monkey.patch_all()
"""


def test_the_heartbeat_goes_on_under_a_greenlet_that_computes(raw: redis.Redis) -> None:
    pytest.importorskip("gevent")
    with program(
        GEVENT
        + """
import django, os, sys, time
django.setup()
from django_latch import *
import gevent

def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

lease = latch("job", timeout=0, ttl=0.6).acquire()
print("held", flush=True)
compute(1.8)
lease.ensure_held()
lease.renew()
lease.release()

# Greenlets wait for each other, each with a lease of its own.
shared, order = latch("job", timeout=10, ttl=5), []
def work(number):
    with shared as lease:
        order.append(lease.fence)
        gevent.sleep(0.01)
gevent.joinall([gevent.spawn(work, n) for n in range(5)], timeout=20)
assert len(order) == 5 and order == sorted(order), order
print("served", flush=True)
left = latch("left", timeout=0, ttl=600).acquire()
compute(0.1)
""",
        setup="",
    ) as holder:
        holder.expect("held")
        holder.expect("served")
        begun = time.monotonic()
        assert holder.end() == 0, holder.errors
        assert time.monotonic() - begun < 1 + 2
        assert holder.errors == []
    audit.assert_nothing_held(raw)
