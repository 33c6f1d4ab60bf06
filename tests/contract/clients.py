"""Callers that keep the rules of the protocol, one call at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django_latch.core import replies, verbs
from django_latch.core.calls import Call
from django_latch.core.verbs import Ask, Caller


@dataclass
class Client:
    """One acquisition. Its clock never steps; times in microseconds of it."""

    ask: Ask
    caller: Caller
    ticket: int = 0
    state: str = "asking"  # asking, waiting, holding or gone
    fence: int = 0
    deadline: int = 0
    unanswered: bool = False  # a request of this token may still be under way
    excused: bool = False  # what it holds was taken from it by data loss, force or the clock
    last_lease: bool = False  # it renews no more

    @property
    def token(self) -> str:
        return self.caller.token

    @property
    def name(self) -> str:
        return self.ask.name

    def believes(self, at: int) -> bool:
        """Whether it acts as the holder."""
        return self.state == "holding" and not self.excused and at <= self.deadline

    def request(self, silent: int = 0) -> Call[replies.Request]:
        return verbs.request(self.ask, self.caller, ticket=self.ticket, silent=silent)

    def hear(self, reply: Any, sent: int, token: str) -> None:
        """Take in the answer to a request; `token` is for another try, where one is due."""
        match reply:
            case replies.Granted(fence, left):
                self.state, self.fence = "holding", fence
                self.deadline = sent + left * 1000
                self.unanswered = False
            case replies.Queued(ticket):
                self.state, self.ticket = "waiting", ticket
            case replies.Busy() | replies.Full():
                self.state = "gone"
            case replies.Ended(reason="revoked" | "finished"):
                self.state = "gone"
            case replies.Ended():  # before it was told anything: again, in the old place
                self.caller = replace(self.caller, token=token)
                self.state = "asking"
                self.unanswered = False

    def hear_of_renewal(self, reply: Any, sent: int) -> None:
        """A later answer may only raise the deadline, and only before it has passed."""
        if isinstance(reply, replies.Ended):
            self.state = "gone"
        elif sent <= self.deadline:
            self.deadline = max(self.deadline, sent + reply.left * 1000)
