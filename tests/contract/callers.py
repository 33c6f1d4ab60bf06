"""Callers that Hypothesis drives: the machine that tests the scripts and the model.

The callers keep the client's rules of the protocol; what arrives late, twice, or not at all is
the network's doing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from django_latch.core import replies, verbs
from django_latch.core.verbs import Ask, Caller
from tests.contract.clients import Client
from tests.contract.invariants import require
from tests.contract.world import LEASES, PACE, SLOTS, World, names, slots

HOLDS = (0, 0, 0, 1.5, 5.0)

leases = st.sampled_from(LEASES)
lost = st.sampled_from([False, False, False, True])


def any_client(*states: str) -> Callable[[Machine], bool]:
    """Whether a rule has somebody to act on."""
    return lambda machine: machine.pick(0, *states) is not None


class Machine(World):
    """See above. Subclasses give the sides."""

    # Callers

    def token(self) -> str:
        self.count += 1
        return f"{self.count:032x}"

    def free_slot(self, slot: int) -> int | None:
        order = [(slot + i) % SLOTS for i in range(SLOTS)]
        return next((i for i in order if i not in self.clients), None)

    def pick(self, slot: int, *states: str) -> Client | None:
        """The first client from `slot` on that is in one of the states."""
        order = [self.clients.get((slot + i) % SLOTS) for i in range(SLOTS)]
        return next((c for c in order if c is not None and c.state in states), None)

    def forget_gone(self) -> None:
        self.clients = {slot: c for slot, c in self.clients.items() if c.state != "gone"}

    @precondition(lambda self: len(self.clients) < SLOTS)
    @rule(
        slot=slots,
        name=names,
        lease=leases,
        limit=st.sampled_from([1, 1, 1, 2, 3]),
        wait=st.sampled_from([10, 10, 10, 0]),
        hold=st.sampled_from(HOLDS),
        most=st.sampled_from([100, 100, 2, 1, 1, 0]),
        job=st.sampled_from(["", "", "", "job-1", "job-2"]),
        lost=lost,
    )
    def begin(
        self,
        slot: int,
        name: str,
        lease: float,
        limit: int,
        wait: int,
        hold: float,
        most: int,
        job: str,
        lost: bool,
    ) -> None:
        free = self.free_slot(slot)
        if free is None:
            return
        token = self.token()
        ask = Ask(
            name=name,
            ttl=lease,
            owner=f'{{"label":"{self.count}"}}',
            timeout=wait,
            limit=limit,
            min_hold=hold,
            max_waiters=most,
        )
        self.untidy |= bool(hold)
        wake = token[-16:] if wait else ""
        client = self.clients[free] = Client(ask, Caller(token, job, wake))
        self.ask(client, lost=lost)

    @precondition(any_client("asking", "waiting"))
    @rule(
        slot=slots,
        parked=st.booleans(),
        silent=st.sampled_from(["", "", "offered", "held"]),
        lost=lost,
    )
    def poll(self, slot: int, parked: bool, silent: str, lost: bool) -> None:
        client = self.pick(slot, "asking", "waiting")
        if client is None:
            return
        holders = self.seen.lock(client.name).holders
        fences = [holder.fence for holder in holders if holder.state == silent]
        self.ask(
            client,
            silent=fences[0] if fences else 0,
            park=client if parked and client.state == "waiting" else None,
            lost=lost,
        )

    def ask(
        self, client: Client, *, silent: int = 0, park: Client | None = None, lost: bool
    ) -> None:
        reply = self.run(client.request(silent), park)
        if lost:
            client.unanswered = True
            return
        if self.keeps_place(client):
            out = isinstance(reply, replies.Full | replies.Busy)
            require(not out, 7, "a waiter that was let in is put out")
            kept = not isinstance(reply, replies.Queued) or reply.ticket == client.ticket
            require(kept, 7, "a waiter got another ticket")
        client.hear(reply, self.mono, self.token())
        if client.state == "gone" and client.unanswered:
            # Refused, but an earlier request may be under way, and must get nothing.
            self.run(verbs.end(client.name, client.token, "abandoned", resent=True))
        self.forget_gone()

    def keeps_place(self, client: Client) -> bool:
        """Whether the client has a ticket that can be believed, whatever was lost."""
        newest = max(self.mono + self.offset, self.seen.stamp)
        oldest = self.mono + self.offset - client.ask.max_timeout * 1e6
        return bool(client.ticket) and oldest <= client.ticket <= newest

    @precondition(any_client("asking", "waiting", "holding"))
    @rule(slot=slots, job=st.sampled_from(["", "", "job-1", "job-2"]), lost=lost)
    def leave(self, slot: int, job: str, lost: bool) -> None:
        client = self.pick(slot, "asking", "waiting", "holding")
        if client is None:
            return
        held = client.state == "holding"
        call = verbs.end(
            client.name,
            client.token,
            "released" if held else "abandoned",
            client.fence if held else None,
            resent=not held,
            job=job if held else "",
            keep_job_for=5.0,
        )
        owner = client.believes(self.mono)
        client.state = "gone"
        self.forget_gone()
        reply = self.run(call)
        if lost:
            reply = self.run(verbs.resent(call))
        if owner and self.mono <= client.deadline:
            require(reply.reason == "released", 2, f"an owner's release was {reply.reason}")

    @precondition(any_client("holding"))
    @rule(slot=slots, lease=leases, lost=lost)
    def renew(self, slot: int, lease: float, lost: bool) -> None:
        client = self.pick(slot, "holding")
        if client is None or client.last_lease:
            return
        reply = self.run(verbs.renew(client.name, client.token, client.fence, lease))
        if client.believes(self.mono):
            require(isinstance(reply, replies.Renewed), 2, f"an owner's renewal was {reply}")
        if isinstance(reply, replies.Renewed):
            require(reply.fence == client.fence, 3, "a renewal of another lease")
        if not lost:
            client.hear_of_renewal(reply, self.mono)
            self.untidy |= client.state == "gone"  # whoever has lost a lease does not give it back
            self.forget_gone()

    @precondition(lambda self: self.dead or self.pick(0, "holding"))
    @rule(slot=slots, seconds=st.sampled_from([0.0, 0.5, 5.0]), dead=st.booleans())
    def shorten(self, slot: int, seconds: float, dead: bool) -> None:
        """By a holder that is about to end, or on proof that it is dead."""
        among = self.dead if dead else [c for c in self.clients.values() if c.state == "holding"]
        if not among:
            return
        client = among[slot % len(among)]
        client.last_lease = True  # a late copy would cut what is renewed afterwards
        client.deadline = min(client.deadline, self.mono + PACE + round(seconds * 1e6))
        self.run(verbs.shorten(client.name, client.token, client.fence or None, seconds))

    @precondition(any_client("holding"))
    @rule(
        slot=slots,
        lease=leases,
        remember=st.sampled_from([0.0, 0.0, 300.0]),
        hold=st.sampled_from(HOLDS),
        lost=lost,
    )
    def adopt(self, slot: int, lease: float, remember: float, hold: float, lost: bool) -> None:
        client, free = self.pick(slot, "holding"), self.free_slot(slot)
        if client is None or free is None:
            return
        owner = client.believes(self.mono)
        client.state = "gone"
        token = self.token()
        owner_record = '{"label":"adopter"}'
        self.untidy |= bool(hold)
        call = verbs.adopt(client.name, client.token, token, lease, owner_record, remember, hold)
        reply = self.run(call)
        if lost:
            reply = self.run(call)
        if owner and self.mono <= client.deadline:
            require(isinstance(reply, replies.Renewed), 2, f"an owner's hand-over was {reply}")
        if isinstance(reply, replies.Renewed):
            asked = replace(client.ask, ttl=lease)
            heir = Client(asked, Caller(token), state="holding", fence=reply.fence)
            heir.deadline = self.mono + reply.left * 1000
            self.clients[free] = heir
        self.forget_gone()

    @precondition(any_client("holding"))
    @rule(slot=slots)
    def clear(self, slot: int) -> None:
        """By force: for a while two may believe that they hold it."""
        client = self.pick(slot, "holding")
        if client is not None:
            client.excused = True
            self.run(
                verbs.end(
                    client.name,
                    client.token,
                    "revoked",
                    client.fence,
                    resent=True,
                    note="me: stuck",
                )
            )

    @rule(name=names)
    def trim(self, name: str) -> None:
        self.run(verbs.trim(name))

    @rule(name=names)
    def read(self, name: str) -> None:
        before = self.seen
        self.run(verbs.read(name))
        self.run(verbs.queue(name, 3))
        before.now = self.seen.now  # time makes things go, reading does not
        was, now = before.visible(), self.seen.visible()
        for part in ("locks", "index", "stamp"):
            assert now[part] == was[part], "reading has written"

    # The end

    def teardown(self) -> None:
        """I12: when all have left in order, nothing is left. I13: nor when all were killed."""
        if not self.sound or self.torn is not None:
            return
        for slot in list(self.clients):
            if not self.untidy:
                self.leave(slot, "", lost=False)
        if not self.untidy:
            self.require_empty(12)
        # What the clock's way back has made longer is cut by the first look, and at the end of a
        # lease its permit may still have to cool.
        half = max(*LEASES, 3.0 + 3.0) / 2  # a look in between: after GRACE less would be noted
        for seconds in (0.0, half, half, max(HOLDS)):
            self.tick(seconds + 0.001)
            for name in "ab":
                self.run(verbs.trim(name))
        self.require_empty(13)
        require(not self.seen.index, 13, f"still in the index: {self.seen.index}")
        require(not self.ledger.open, 10, f"no event ends {self.ledger.open}")

    def require_empty(self, number: int) -> None:
        for name, lock in self.seen.locks.items():
            require(not lock.records, number, f"{name} still has {list(lock.records.values())}")
