"""What else can be asked of a store, beside the lock's own calls."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from django_latch.core import replies, verbs
from django_latch.core.verbs import Ask, Caller
from tests.contract.callers import Machine, leases
from tests.contract.clients import Client
from tests.contract.world import SLOTS, names, slots

agents = st.sampled_from(["", "x", "y"])


class WholeMachine(Machine):
    """Several locks at once, next runs, hints and counts. Subclasses give the sides."""

    @rule(slot=slots, lease=leases)
    def take_both(self, slot: int, lease: float) -> None:
        """Both locks at once, or none; whoever gets none tries one by one."""
        if len(self.clients) > SLOTS - 2:
            return
        self.count += 1
        ask = Ask(name="a", ttl=lease, owner=f'{{"label":"{self.count}"}}')
        tokens = [self.token(), self.token()]
        reply = self.run(verbs.many(ask, ["a", "b"], tokens))
        for i, name in enumerate("ab"):
            free = self.free_slot(slot)
            assert free is not None
            client = self.clients[free] = Client(replace(ask, name=name), Caller(tokens[i]))
            if not isinstance(reply, str):
                left, fences = reply
                client.hear(replies.Granted(fences[i], left), self.mono, "")

    @rule(name=names)
    def nudge(self, name: str) -> None:
        offers = [h.fence for h in self.seen.lock(name).holders if h.state == "offered"]
        self.run(verbs.nudge(name, offers[0] if offers else 1))

    @rule(name=names, agent=agents, other=agents)
    def wait_for(self, name: str, agent: str, other: str) -> None:
        self.run(verbs.waits(name, agent, other))

    @rule(
        name=names,
        what=st.sampled_from(["claim", "claim", "raise", "revive"]),
        job=st.sampled_from(["job-1", "job-2", "job-3"]),
        live=st.sampled_from([1.0, 60.0]),
        task=st.sampled_from(["task", "task", "other"]),
        made=st.integers(1, 3),
    )
    def next_run(self, name: str, what: str, job: str, live: float, task: str, made: int) -> None:
        self.count += 1
        self.run(verbs.slot(name, what, job, live, f"{task}\n{made}\ncall {self.count}"))

    @rule(name=names, made=st.integers(1, 3), live=st.sampled_from([1.0, 60.0]))
    def next_run_without_carrier(self, name: str, made: int, live: float) -> None:
        self.run(verbs.pass_on(name, "job-1", made, "job-4", live))

    @rule(what=st.sampled_from(["count", "names", "last", "due", "next", "known"]), name=names)
    def look_up(self, what: str, name: str) -> None:
        calls = {
            "count": verbs.count(),
            "names": verbs.names(0, 1),
            "last": verbs.names(0, -1, reverse=True),
            "due": verbs.due(1),
            "next": verbs.next_run(name),
            "known": verbs.known(name),
        }
        self.run(calls[what])

    @rule(
        account=st.sampled_from("xy"),
        member=st.sampled_from("mno"),
        most=st.integers(0, 2),
        seconds=st.sampled_from([1.0, 5.0]),
    )
    def count_leases(self, account: str, member: str, most: int, seconds: float) -> None:
        self.run(verbs.account("a", account, member, most, seconds))
