"""Snapshots in memory and on a server answer every course of calls alike."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from django_latch.core import snapshot as calls
from django_latch.core import verbs
from django_latch.core.calls import Call
from tests.contract.bench import Bench, bench, token

WANTED = calls.Wanted(
    name="lock", fresh_for=2, keep_for=6, wait=1, ttl=3, max_hold=20, permits=1, slice=1
)

numbers = st.integers(1, 4)
steps = st.one_of(
    st.tuples(st.just("read"), numbers, st.sampled_from(["", "compact"])),
    st.tuples(st.just("look"), st.just(0), st.sampled_from(["", "compact"])),
    st.tuples(st.just("publish"), numbers, st.sampled_from(["own", "permit", "older", "dated"])),
    st.tuples(st.just("fail"), numbers, st.sampled_from(["own", "permit", "unknown", "given up"])),
    st.tuples(st.just("renew"), numbers, st.just("")),
    st.tuples(st.just("invalidate"), st.just(0), st.just("")),
    st.tuples(st.just("names"), st.just(0), st.just("")),
    st.tuples(
        st.just("advance"), st.sampled_from([1, 300, 1_100, 2_100, 4_000, 31_000]), st.just("")
    ),
)


class Course:
    """One course of calls on one store, and what was answered.

    Attributes:
        fences: of each caller's last election.
        deadline: the store's time, in seconds since it began.
    """

    def __init__(self, at: Bench) -> None:
        self.at = at
        self.fences: dict[int, int] = {}
        self.time = 1_700_000_000.0

    def step(self, what: str, n: int, how: str) -> Any:
        if what == "advance":
            self.at.advance(n / 1000)
            self.time += n / 1000
            return None
        answer = self.at.call(self.call(what, n, how))
        if isinstance(answer, calls.Seen):
            if answer.role in calls.ELECTED:
                self.fences[n] = answer.holder
            return replace(answer, since="")
        return answer

    def call(self, what: str, n: int, how: str) -> Call[Any]:
        wanted, fence = WANTED, self.fences.get(n, 5)
        match what:
            case "read":
                return calls.read(replace(wanted, shape=how), "{}", token(n))
            case "look":
                return calls.look("lock", how)
            case "publish":
                shapes = {"": b"%d" % n, "compact": b"\x00\xff"}
                mine = "" if how in ("permit", "older") else token(n)
                deadline = self.time + 1 if how == "dated" else 0
                fence -= how == "older"
                return calls.publish(wanted, shapes, mine, fence, 0.25, deadline=deadline)
            case "fail":
                error = "" if how in ("unknown", "given up") else "Broken: it is"
                mine = "" if how == "permit" else token(n)
                return calls.fail(wanted.name, error, mine, 0 if how == "unknown" else fence)
            case "renew":
                return verbs.renew("lock", token(n), fence, 3)
            case "names":
                return calls.names(0, 9)
        return calls.invalidate("lock", 20)


@settings(max_examples=int(os.environ.get("LATCH_EXAMPLES", "200")), deadline=None)
@given(st.lists(steps, min_size=1, max_size=25))
def test_both_stores_answer_alike(course: list[tuple[str, int, str]]) -> None:
    with bench("memory") as memory, bench("redis") as server:
        server.flush()
        one, two = Course(memory), Course(server)
        for at, (what, n, how) in enumerate(course):
            said, meant = two.step(what, n, how), one.step(what, n, how)
            assert said == meant, f"step {at}: {what} {n} {how}"
