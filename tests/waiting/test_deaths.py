"""Holders and waiters that die, or stand still, while others wait."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import redis

from django_latch import Latch, latch
from django_latch.core import verbs
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.calls import A, request, send
from tests.integration.programs import PREAMBLE, Program, program
from tests.integration.until import until
from tests.waiting.crowd import BRISK, PATIENCE, Crowd, queue, settled, waiters

brisk = pytest.mark.usefixtures("_brisk")

HOLD = """
lease = latch("job", ttl={ttl}).acquire()
say("holds")
hear()
"""

#: Waits, says so when it holds, and releases when it is told to.
WAIT = """
say("waits")
with latch("job", ttl={ttl}, timeout=60) as lease:
    say("holds", lease.fence)
    hear()
say("released")
"""

#: Many that wait, each a process of its own: forked, for a program takes a second to start.
FAMILY = """
children = []
for _ in range(20):
    if not (pid := os.fork()):
        latch("job", timeout=60).acquire()
        os._exit(1)
    children.append(pid)
say(*children)
for pid in children:
    say(os.WTERMSIG(os.waitpid(pid, 0)[1]))
"""


def preamble(**changes: object) -> str:
    """The usual beginning of a program, with other settings."""
    return PREAMBLE + settled(**changes)


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


def waiting(raw: redis.Redis, made: Program) -> Program:
    """The program, once it stands in the queue and waits for a message."""
    before = waiters(raw), audit.blocked(raw)
    made.expect("waits")
    until(lambda: (waiters(raw), audit.blocked(raw)) == (before[0] + 1, before[1] + 1))
    return made


def test_the_first_waiter_enters_when_a_killed_holders_lease_has_passed(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with program(HOLD.format(ttl=0.9)) as holder:
        holder.expect("holds")
        first = crowd.queue_up(lambda: (lock().acquire(), audit.now(raw)))
        second = crowd.queue_up(lambda: lock().acquire())
        time.sleep(0.5)  # so that the lease has been renewed
        (record,) = [r for r in audit.records(raw, "job").values() if r.state == "held"]
        holder.kill()
        (record,) = [r for r in audit.records(raw, "job").values() if r.state == "held"]
    lease, entered = first.result(PATIENCE)
    assert record.exp < entered < record.exp + 2000
    assert lease.fence > record.fence
    assert not second.done()
    lease.release()
    second.result(PATIENCE).release()
    kinds = audit.kinds(raw, "job")
    assert kinds.count("expired") == 1
    audit.assert_free(raw, "job")


@brisk
def test_twenty_waiters_killed_at_once_cost_live_and_claim_at_most(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with lock() as holder, program(FAMILY, setup=preamble(**BRISK)) as family:
        children = [int(pid) for pid in family.hear().split()]
        until(lambda: waiters(raw) == 20)
        last = crowd.queue_up(lock().acquire)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for _ in children:
            family.expect(int(signal.SIGKILL))
        assert waiters(raw) > 15  # they stand there still
        holder.release()
        released = time.monotonic()
        lease = last.result(PATIENCE)
        assert time.monotonic() - released < BRISK["LIVE"] + BRISK["CLAIM"] + 2
    lease.release()
    audit.assert_free(raw, "job")


def test_a_dead_first_waiter_is_passed_over_long_before_its_claim_ends(
    raw: redis.Redis, crowd: Crowd
) -> None:
    slow = {"LIVE": 8, "CLAIM": 8}
    with latch_settings(**slow), program(WAIT.format(ttl=20), setup=preamble(**slow)) as dead:
        with lock() as holder:
            waiting(raw, dead)
            second = crowd.queue_up(lock().acquire)
            dead.kill()
            holder.release()
            released = time.monotonic()
            lease = second.result(PATIENCE)
            assert time.monotonic() - released < 2.5
        assert lease.fence > holder.fence + 1  # the dead one's offer had one
        lease.release()
    audit.assert_free(raw, "job")


def test_a_slow_first_waiter_loses_its_turn_and_not_its_place(
    raw: redis.Redis, crowd: Crowd
) -> None:
    """One that is between two slices, so that its message stays unread."""
    slow = {"LIVE": 8, "CLAIM": 8}
    with latch_settings(**slow):
        holder = lock().acquire()
        ticket = send(request(A, timeout=60, claim=8)).ticket
        second = crowd.queue_up(lock().acquire)
        third = crowd.queue_up(lock().acquire)
        holder.release()
        lease = second.result(PATIENCE)
        assert audit.tombs(raw, "job")[A] == "lapsed"
        reply = send(request(A, timeout=60, claim=8, ticket=ticket))
        assert (reply.ticket, reply.ahead) == (ticket, 0)
        lease.release()
        granted = send(request(A, timeout=60, claim=8, ticket=ticket))
        assert granted.fence > lease.fence
        assert not third.done()
        send(verbs.end("job", A, "released", granted.fence))
        third.result(PATIENCE).release()
    audit.assert_free(raw, "job")


@brisk
def test_a_waiter_that_stood_still_past_its_liveness_keeps_its_ticket(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with program(WAIT.format(ttl=20), setup=preamble(**BRISK)) as paused:
        with lock():
            waiting(raw, paused)
            ((token, ticket),) = queue(raw).items()
            others = [crowd.queue_up(lock().acquire) for _ in range(2)]
            paused.signal(signal.SIGSTOP)
            until(lambda: token not in queue(raw))  # the others' polls have swept it away
            assert audit.tombs(raw, "job")[token] == "lapsed"
            paused.signal(signal.SIGCONT)
            until(lambda: token in queue(raw))
            assert next(iter(queue(raw).items())) == (token, ticket)
        paused.hear()
        assert not any(other.done() for other in others)
        paused.say("release")
        for other in others:
            other.result(PATIENCE).release()
    audit.assert_free(raw, "job")


def test_a_waiter_frozen_in_its_wait_holds_when_it_goes_on(raw: redis.Redis) -> None:
    """Its request stands behind its BLPOP: the server runs it all the same."""
    with program(WAIT.format(ttl=20)) as frozen:
        with lock() as holder:
            waiting(raw, frozen)
            frozen.signal(signal.SIGSTOP)
        until(lambda: [r.state for r in audit.records(raw, "job").values()] == ["held"])
        frozen.signal(signal.SIGCONT)
        assert int(frozen.hear().removeprefix("holds ")) > holder.fence
        frozen.say("release")
        frozen.expect("released")
    audit.assert_free(raw, "job")


def test_a_waiter_frozen_for_longer_than_its_lease_is_not_told_that_it_holds(
    raw: redis.Redis, crowd: Crowd
) -> None:
    with program(WAIT.format(ttl=1)) as frozen:
        holder = lock().acquire()
        waiting(raw, frozen)
        (ticket,) = queue(raw).values()
        others = [crowd.queue_up(lock().acquire) for _ in range(2)]
        frozen.signal(signal.SIGSTOP)
        holder.release()
        lease = others[0].result(PATIENCE)  # when that lease has passed
        frozen.signal(signal.SIGCONT)
        until(lambda: waiters(raw) == 2)
        assert next(iter(queue(raw).values())) == ticket  # it kept its place
        lease.ensure_held()
        lease.release()
        assert int(frozen.hear().removeprefix("holds ")) > lease.fence
        assert not others[1].done()
        frozen.say("release")
        others[1].result(PATIENCE).release()
        frozen.expect("released")
    audit.assert_free(raw, "job")


@brisk
def test_an_offer_to_a_dead_waiter_alone_lapses(raw: redis.Redis) -> None:
    with program(WAIT.format(ttl=20), setup=preamble(**BRISK)) as dead:
        holder = lock().acquire()
        waiting(raw, dead)
        dead.kill()
        holder.release()
        begun = time.monotonic()
        until(lambda: (lease := lock(timeout=0).try_acquire()) and (lease.release() or True))
        assert time.monotonic() - begun < BRISK["CLAIM"] + 2
    audit.assert_free(raw, "job")
