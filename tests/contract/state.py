"""What a store remembers, whichever it is, in one form that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from django_latch.core.model import Model
from django_latch.core.model_state import Event, Lock, NextRun, Record, Tomb

#: Added to the score of a tomb that must last: see lua/_common.lua.
LASTS = 4_000_000_000_000_000

#: The server itself drops what has ended.
FOREVER = 10**18


@dataclass
class State:
    """Everything of one bucket that a later call could see."""

    now: int  # ms
    locks: dict[str, Lock] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)
    wakes: dict[str, list[str]] = field(default_factory=dict)
    waits: dict[str, tuple[int, str]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)  # since the last look
    due: dict[str, int] = field(default_factory=dict)
    accounts: dict[str, dict[str, int]] = field(default_factory=dict)
    stamp: int = 0

    def lock(self, name: str) -> Lock:
        return self.locks.get(name, Lock())

    def visible(self) -> dict[str, Any]:
        """Everything but what is forgotten by now."""
        locks = {}
        for name, lock in self.locks.items():
            seen = copied(lock)
            seen.until = 0
            seen.tombs = {t: tomb for t, tomb in lock.tombs.items() if tomb.forget >= self.now}
            seen.jobs = {j: until for j, until in lock.jobs.items() if until > self.now}
            # A deadline without a place means nothing. It is left where the queue was lost.
            seen.alive = {t: until for t, until in lock.alive.items() if t in lock.queue}
            seen.next = replace(lock.next, ends=0) if lock.next.ends >= self.now else NextRun()
            if seen != Lock():
                locks[name] = seen
        accounts = {
            account: seen
            for account, members in self.accounts.items()
            if (seen := {m: until for m, until in members.items() if until >= self.now})
        }
        return {
            "locks": locks,
            "index": self.index,
            "due": self.due,
            "accounts": accounts,
            "wakes": self.wakes,
            "waits": {a: wait for a, wait in self.waits.items() if wait[0] >= self.now},
            "events": self.events,
            "stamp": self.stamp,
        }


def copied(lock: Lock) -> Lock:
    """A copy that does not change with the lock."""
    return Lock(
        records={token: copy(record) for token, record in lock.records.items()},
        holding=list(lock.holding),
        queue=dict(lock.queue),
        alive=dict(lock.alive),
        tombs=dict(lock.tombs),
        jobs=dict(lock.jobs),
        next=copy(lock.next),
        until=lock.until,
    )


def of_model(model: Model, us: int) -> State:
    """A copy of the model's state; its events are taken."""
    bucket, now = model.bucket, us // 1000
    state = State(
        now=now,
        locks={
            name: copied(lock if lock.until >= now else Lock(jobs=lock.jobs, next=lock.next))
            for name, lock in bucket.locks.items()
        },
        index=dict(bucket.index),
        wakes={w: list(k.messages) for w, k in bucket.wakes.items() if k.until >= now},
        waits=dict(bucket.waits),
        due=dict(bucket.due),
        accounts={account: dict(members) for account, members in bucket.accounts.items()},
        events=list(bucket.events),
        stamp=bucket.stamp,
    )
    bucket.events.clear()
    return state


def of_server(keys: dict[str, Any], split: Callable[[str], tuple[str, str]], us: int) -> State:
    """Read the keys of the scripts.

    Parameters:
        keys: key -> value.
        split: a key's kind and name.
    """
    state = State(now=us // 1000)
    kinds: dict[str, dict[str, Any]] = {}
    for key, value in keys.items():
        kind, name = split(key)
        kinds.setdefault(kind, {})[name] = value
    state.stamp = int(kinds.get("stamp", {}).get("", 0))
    state.index = _pairs(kinds.get("index", {}).get("", []))
    state.due = _pairs(kinds.get("due", {}).get("", []))
    state.accounts = {name: _pairs(flat) for name, flat in kinds.get("A", {}).items()}
    state.wakes = kinds.get("W", {})
    for agent, raw in _dict(kinds.get("waits", {}).get("", [])).items():
        until, _, name = raw.partition("|")
        state.waits[agent] = int(until), name
    state.events = [_event(fields) for _, fields in kinds.get("events", {}).get("", [])]
    for name in {name for kind in "RQVPLJ" for name in kinds.get(kind, {})}:
        state.locks[name] = _lock({kind: found.get(name, []) for kind, found in kinds.items()})
    return state


def _lock(of: dict[str, list[str]]) -> Lock:
    lock = Lock(
        queue=_pairs(of.get("Q", [])), alive=_pairs(of.get("V", [])), jobs=_pairs(of.get("L", []))
    )
    if run := _dict(of.get("J", [])):
        known: dict[str, Any] = {
            key: run.get(key, "") for key in ("job", "payload", "ran", "given")
        }
        lock.next = NextRun(**known, until=int(run["until"]), ends=FOREVER)
    scores = _pairs(of.get("P", []))
    for token, raw in _dict(of.get("R", [])).items():
        if token == "@":
            lock.holding = raw.split()
        elif not raw.startswith("ended|"):
            lock.records[token] = _record(token, raw)
        elif token in scores:
            lock.tombs[token] = _tomb(raw, scores[token])
    return lock


def unlisted(keys: dict[str, Any], split: Callable[[str], tuple[str, str]]) -> set[str]:
    """Tokens in the records that nothing lists: nobody will ever take them away."""
    found, of = set(), {split(key): value for key, value in keys.items()}
    for (kind, name), flat in of.items():
        if kind == "R":
            records = _dict(flat)
            listed = {*records.pop("@", "").split(), *_dict(of.get(("Q", name), []))}
            found |= records.keys() - listed - _dict(of.get(("P", name), [])).keys()
    return found


def _dict(flat: list[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _pairs(flat: list[str]) -> dict[str, int]:
    return {member: int(score) for member, score in _dict(flat).items()}


def _record(token: str, raw: str) -> Record:
    at = raw.split("|", 10)
    fence, exp, lease, claim, limit, ticket, since, hold = map(int, at[1:9])
    return Record(
        token=token,
        state=at[0],  # type: ignore[arg-type]
        fence=fence,
        exp=exp,
        lease=lease,
        claim=claim,
        limit=limit,
        ticket=ticket,
        since=since,
        hold=hold,
        wake=at[9],
        owner=at[10],
    )


def _tomb(raw: str, score: int) -> Tomb:
    _, reason, fence, ticket, held = raw.split("|")
    return Tomb(reason, int(fence), int(ticket), int(held), score % LASTS, score >= LASTS)


def _event(flat: list[str]) -> Event:
    fields: dict[str, Any] = dict(_dict(flat))
    known = [fields.pop(key) for key in ("kind", "name", "at", "fence", "owner")]
    for key in ("waited", "held", "old"):
        if key in fields:
            fields[key] = int(fields[key])
    return Event(known[0], known[1], int(known[2]), int(known[3]), known[4], fields)
