"""Script calls without a Lease around them: what other processes and late copies send."""

from __future__ import annotations

from typing import Any

from django_latch.core import replies, verbs
from django_latch.core.calls import Call
from django_latch.core.owner import Owner
from django_latch.core.verbs import Ask, Caller
from django_latch.store.connections import store

A, B, C = "a" * 40, "b" * 40, "c" * 40
OWNER = Owner.here(label="a test").to_json()


def request(token: str, *, ticket: int = 0, **changes: Any) -> Call[replies.Request]:
    """A request for the lock `job`; changes of the Ask by keyword."""
    ask = Ask(**{"name": "job", "ttl": 20, "owner": OWNER, **changes})
    return verbs.request(ask, Caller(token, wake=token[:16]), ticket=ticket)


def send(call: Call[Any]) -> Any:
    """Run a script; its reply."""
    return store().call(call)


def grant(token: str = A, **changes: Any) -> replies.Granted:
    """Take the lock for good: nobody renews or releases it."""
    reply = send(request(token, **changes))
    assert isinstance(reply, replies.Granted), reply
    return reply
