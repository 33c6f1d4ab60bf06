"""Two locks in time and trouble: the part of the machine that is not about the callers.

The same calls go to every side. All must answer the same and remember the same, and after each
call the invariants must hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from django_latch.core.calls import Call
from django_latch.core.replies import Closed
from tests.contract import invariants
from tests.contract.clients import Client
from tests.contract.engines import Engine, ModelEngine
from tests.contract.invariants import Step, require
from tests.contract.ledger import Ledger
from tests.contract.virtual import BEGIN

#: Microseconds that each call takes.
PACE = 50

#: How many callers are about at once.
SLOTS = 5

#: Seconds: around the 3 s for which silent waiters and offers live, and the 20 ms of standby.
TICKS = (0.001, 0.019, 0.02, 0.5, 0.999, 0.9999, 1.0, 1.001, 2.0, 2.999, 3.0, 3.001, 5.0, 10.0)
LONG = (59.0, 61.0, 200.0)
LEASES = (1.0, 2.0, 3.0, 10.0, 60.0)

#: Seconds after which a lock that has lost one of its keys loses the others.
TORN = 5.0

slots = st.integers(0, SLOTS - 1)
names = st.sampled_from(["a", "a", "a", "b"])


class World(RuleBasedStateMachine):
    """See above. Subclasses give the sides and the callers."""

    def engines(self) -> Sequence[Engine]:
        """The sides; the last one is the model's."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.sides = self.engines()
        self.mono = BEGIN  # the time that passes, in microseconds
        self.offset = 0  # what the server's clock shows beyond it
        self.clients: dict[int, Client] = {}
        self.dead: list[Client] = []
        self.sent: list[Call[Any]] = []
        self.ledger = Ledger()
        self.count = 0
        self.torn: float | None = None  # for how many seconds a lock has been without a key
        self.index_lost = False
        self.untidy = False  # somebody left a request, a hold or a cooling permit behind
        self.sound = True  # whether nothing has failed yet
        self.pass_time(0)
        self.look()

    # Calls

    def run(self, call: Call[Any], park: Client | None = None) -> Any:
        """Carry out a call on every side, and look at what it did."""
        self.sound = False
        self.pass_time(PACE)
        before = self.seen
        outcomes = [
            side.park(call, park.token, park.caller.wake) if park else (side.run(call), 0)
            for side in self.sides
        ]
        reply, _ = outcomes[-1]
        for other in outcomes[:-1]:
            assert other == outcomes[-1], f"{call.verb}: {other} there, {reply} by the model"
        self.look()
        self.sound = False  # unless nothing below raises
        self.sent.append(call)
        step = Step(call, before, self.seen, reply)
        step.check()
        self.runs_once(call, reply)
        self.ledger.note(step)
        self.check_now()
        self.sound = True
        return reply

    def look(self) -> None:
        """See what the sides remember, which must be the same."""
        self.sound = False
        *others, self.seen = [side.state() for side in self.sides]
        for other in others:
            assert other.visible() == self.seen.visible(), "the server and the model disagree"
        self.sound = True

    def runs_once(self, call: Call[Any], reply: Any) -> None:
        """I5: once more in the same moment, it answers the same and changes nothing."""
        model = self.sides[-1]
        assert isinstance(model, ModelEngine)
        twin = model.copy()
        before = twin.state().visible()
        again = twin.run(call)
        after = twin.state().visible()
        for free in ("events", "wakes"):  # the same may be said twice
            del before[free], after[free]
        if isinstance(reply, Closed):  # one copy of a release is the one that handed over
            reply, again = replace(reply, offered=0), replace(again, offered=0)
        same = again == reply or call.args[:1] == ("revive",)  # that finds nothing overdue any more
        require(same, 5, f"{call.verb} answered {reply}, and then {again}")
        # Where a key was lost, the first copy mends it, and only the second sees all.
        same = after == before or self.torn is not None
        require(same, 5, f"{call.verb} did more when it was repeated")

    def check_now(self) -> None:
        """What must hold at any time."""
        for lock in self.seen.locks.values():
            invariants.permits_fit(lock)
        if self.torn is None:
            invariants.all_agree(self.seen, index=not self.index_lost)
        owners: dict[str, list[Client]] = {}
        for client in self.clients.values():
            if client.believes(self.mono):
                owners.setdefault(client.name, []).append(client)
        for name, group in owners.items():
            least = min(client.ask.limit for client in group)
            require(len(group) <= least, 2, f"{len(group)} owners under a limit of {least}")
            for client in group:
                hold = self.seen.lock(name).records.get(client.token)
                proof = hold is not None and hold.state == "held" and hold.fence == client.fence
                require(proof, 2, f"an owner has {hold}")
                require(self.seen.now <= hold.exp, 2, "an owner's record has run out")

    # Time

    def pass_time(self, us: int) -> None:
        self.mono += us
        for side in self.sides:
            side.move(self.mono + self.offset)
        self.ledger.pass_time((self.mono + self.offset) // 1000)

    @rule(seconds=st.sampled_from(TICKS))
    def tick(self, seconds: float) -> None:
        if self.torn is not None:
            self.torn += seconds
            if self.torn > TORN:  # when each key of a torn lock goes is nobody's promise
                self.flush()
        self.pass_time(round(seconds * 1e6))
        self.look()

    @rule(seconds=st.sampled_from(LONG))
    def long_tick(self, seconds: float) -> None:
        self.ledger.open.clear()  # what nobody looks at goes unnoted, or with less to tell
        self.tick(seconds)

    @rule(seconds=st.sampled_from([0.001, 0.5, 5.0, 3600.0]))
    def clock_back(self, seconds: float) -> None:
        if not self.seen.stamp and self.waits_from_after(seconds):
            return
        self.ledger.stepped_back = True
        for side in self.sides:
            side.lose_advice()  # which of it is remembered once more is nobody's promise
        self.offset -= round(seconds * 1e6)
        self.tick(0.0)

    @rule(seconds=st.sampled_from([0.5, 5.0]))
    def clock_forward(self, seconds: float) -> None:
        """Ends leases too early, as is documented."""
        self.excuse()
        self.offset += round(seconds * 1e6)
        self.tick(0.0)

    # Trouble

    def waits_from_after(self, seconds: float) -> bool:
        """Whether anybody has waited since a time that is not yet, once the clock is set back.

        Without the counter, newcomers would come before them, as the page on leases says.
        """
        then = self.mono + self.offset - round(seconds * 1e6)
        tickets = (ticket for lock in self.seen.locks.values() for ticket in lock.queue.values())
        return any(ticket >= then for ticket in tickets)

    def excuse(self, name: str | None = None) -> None:
        for client in self.clients.values():
            client.excused |= name in (None, client.name)

    @rule()
    def flush(self) -> None:
        for side in self.sides:
            side.flush()
        self.excuse()
        self.ledger.forget()
        self.torn, self.index_lost = None, False
        self.look()

    @rule(kind=st.sampled_from("RQVPLJ"), name=names)
    def lose_a_key(self, kind: str, name: str) -> None:
        lock = self.seen.lock(name)
        if lock.until < self.seen.now + 2 * TORN * 1000:
            return
        for side in self.sides:
            side.lose(kind, name)
        if kind == "R":
            self.excuse(name)
        if kind in "RQVP":
            self.torn = self.torn or 0.0
        self.ledger.forget()
        self.look()

    @rule(kind=st.sampled_from(["stamp", "index", "due"]))
    def lose_a_key_of_the_bucket(self, kind: str) -> None:
        if kind == "stamp" and self.waits_from_after(0):
            return
        for side in self.sides:
            side.lose(kind, "")
        self.index_lost |= kind == "index"
        if kind == "stamp":
            self.ledger.forget()
        self.look()

    @precondition(lambda self: self.sent)
    @rule(n=st.integers(0, 9) | st.integers(0, 200))
    def late_copy(self, n: int) -> None:
        """A call arrives again; nobody hears the answer."""
        self.untidy = True
        self.run(self.sent[-1 - n % len(self.sent)])

    @precondition(lambda self: self.clients)
    @rule(slot=slots)
    def crash(self, slot: int) -> None:
        slot = sorted(self.clients)[slot % len(self.clients)]
        self.untidy = True
        self.dead.append(self.clients.pop(slot))
