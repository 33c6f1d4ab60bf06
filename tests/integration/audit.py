"""What may be in the database, and what must be true of it after every operation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import redis

BUCKET = "latch:1:{00}:"

#: Kind of key -> its type; the kinds that docs/reference/redis.md allows.
KINDS = {
    "R": "hash",
    "Q": "zset",
    "V": "zset",
    "P": "zset",
    "L": "zset",
    "J": "hash",
    "W": "list",
    "stamp": "string",
    "index": "zset",
    "events": "stream",
    "due": "zset",
    "waits": "hash",
    "S": "hash",
    "N": "stream",
    "snapshots": "zset",
}

GRACE = 60_000
WEEK = 604_800_000


def key(kind: str, name: str = "") -> str:
    """The key of a kind, of a lock where the kind is a lock's."""
    return f"{BUCKET}{kind}:{name}" if name else BUCKET + kind


@dataclass(frozen=True)
class Record:
    """A record of a lock, as its hash has it."""

    state: str
    fence: int
    exp: int
    lease: int
    raw: str


def records(raw: redis.Redis, name: str) -> dict[str, Record]:
    """Every record of the lock `name` that is not a tomb, by token."""
    found = {}
    for token, text in raw.hgetall(key("R", name)).items():
        at = text.split("|")
        if token != "@" and at[0] != "ended":
            found[token] = Record(at[0], int(at[1]), int(at[2]), int(at[3]), text)
    return found


def tombs(raw: redis.Redis, name: str) -> dict[str, str]:
    """How the remembered tokens of a lock have ended."""
    every = raw.hgetall(key("R", name))
    return {token: text.split("|")[1] for token, text in every.items() if text[:6] == "ended|"}


def listed(raw: redis.Redis, name: str) -> list[str]:
    """The tokens in the list of holders."""
    return (raw.hget(key("R", name), "@") or "").split()


def locks(raw: redis.Redis) -> set[str]:
    """The names of all locks that have records."""
    begin = key("R") + ":"
    return {found.removeprefix(begin) for found in raw.keys("*") if found.startswith(begin)}


def now(raw: redis.Redis) -> int:
    """The server's clock in ms."""
    seconds, micro = raw.time()
    return seconds * 1000 + micro // 1000


def assert_sound(raw: redis.Redis) -> None:
    """Every key is of an allowed kind and type and has an end; lists and records agree."""
    for found in raw.keys("*"):
        assert found.startswith(BUCKET), found
        kind = re.split(":", found.removeprefix(BUCKET), maxsplit=1)[0]
        assert kind in KINDS, found
        kept = raw.type(found)
        if kept == "none":  # it has ended since
            continue
        assert kept == KINDS[kind], found
        ttl = raw.pttl(found)
        assert ttl != -1, f"{found} has no end"
        assert ttl < 3 * WEEK, f"{found} lives for {ttl} ms"
    for name in locks(raw):
        _assert_lock_sound(raw, name)


def _assert_lock_sound(raw: redis.Redis, name: str) -> None:
    every = records(raw, name)
    held = {token for token, r in every.items() if r.state in ("held", "offered", "cooling")}
    assert set(listed(raw, name)) == held, f"{name!r}: the list of holders differs"
    queue = raw.zrange(key("Q", name), 0, -1)
    assert set(queue) == {t for t, r in every.items() if r.state == "queued"}, name
    assert set(raw.zrange(key("V", name), 0, -1)) == set(queue), name
    assert set(tombs(raw, name)) == set(raw.zrange(key("P", name), 0, -1)), name
    score = raw.zscore(key("index"), name)
    assert (score is not None) == bool(held or queue), f"{name!r}: index {score}, held {held}"
    need = max([r.exp for r in every.values()], default=0) - now(raw)
    if every:
        assert raw.pttl(key("R", name)) >= need


def assert_free(raw: redis.Redis, name: str) -> None:
    """Nobody holds the lock or waits for it, and the lists say so."""
    assert records(raw, name) == {}
    assert listed(raw, name) == []
    assert not raw.exists(key("Q", name), key("V", name))
    assert raw.zscore(key("index"), name) is None
    assert_sound(raw)


def assert_nothing_held(raw: redis.Redis) -> None:
    """No lock of the database is held or waited for."""
    for name in locks(raw):
        assert records(raw, name) == {}
        assert not raw.exists(key("Q", name), key("V", name))
    assert not raw.exists(key("index"))
    assert_sound(raw)


def events(raw: redis.Redis, name: str) -> list[tuple[str, dict[str, str]]]:
    """What the stream says of a lock: kind and fields, oldest first."""
    entries = raw.xrange(key("events")) if raw.exists(key("events")) else []
    return [(fields["kind"], fields) for _, fields in entries if fields["name"] == name]


def kinds(raw: redis.Redis, name: str) -> list[str]:
    """The kinds of those events."""
    return [kind for kind, _ in events(raw, name)]


def blocked(raw: redis.Redis) -> int:
    """How many connections wait for a message about a lock. A Celery worker waits by BRPOP."""
    own = str(raw.connection_pool.connection_kwargs.get("db", 0))
    clients = [client for client in raw.client_list() if client["cmd"] == "blpop"]
    return sum("b" in client["flags"] and client["db"] == own for client in clients)
