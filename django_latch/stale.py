"""Freeing what is provably dead, and repairing keys of ours that hold something else."""

from __future__ import annotations

from dataclasses import dataclass, field

from django_latch import inventory
from django_latch.core import replies, verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import unavailable
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchCorrupt, LatchNotHeld
from django_latch.store.connections import store
from django_latch.store.layout import WEEK
from django_latch.store.redis import RedisStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """Something `clear_stale` did, or would do."""

    name: str
    what: str  # expired, dead or repaired
    fence: int | None = None
    owner: Owner = field(default_factory=Owner)
    detail: str = ""


def clear_stale(*, dry_run: bool = False, actor: str, using: str | None = None) -> list[Cleared]:
    """Free locks whose holder is provably dead, and put our keys in order.

    A lock is left alone unless its lease has passed, or its holder's process is known to be gone:
    a process of this machine, boot and pid namespace with no such pid. Age proves nothing.

    Parameters:
        dry_run: change nothing, only say what would be done.
        actor: by whom, for the events.

    Returns:
        What was done, in the order it was done.

    Raises:
        LatchUnavailable: the store gave no answer; what was done until then stays done.
    """
    at = store(using)
    try:
        return [*_repaired(at, dry_run), *_settled(at, dry_run), *_dead(dry_run, actor, using)]
    except StoreError as error:
        raise unavailable("", error) from error


def _repaired(at: RedisStore, dry_run: bool) -> list[Cleared]:
    """Keys of a wrong type go; unreadable records go; keys without an end get one."""
    done = []
    for key in _own_keys(at):
        kind, name = at.layout.split(key)
        expected = at.layout.type_of(kind)
        found = replies.text(at.command("TYPE", key))
        if found == "none" or expected is None:
            continue
        if found != expected:
            problem = f"{key} was a {found} where a {expected} belongs"
            repair: tuple[str | int, ...] = ("UNLINK", key)
        elif replies.number(at.command("PTTL", key)) == -1:
            problem = f"{key} had no end"
            repair = ("PEXPIRE", key, WEEK)
        elif kind == "R" and (broken := _unreadable(at, key)):
            problem = f"{key} held {len(broken)} unreadable records"
            repair = ("HDEL", key, *broken)
        else:
            continue
        if not dry_run:
            at.command(*repair)
        done.append(Cleared(name=name or key, what="repaired", detail=problem))
    return done


def _settled(at: RedisStore, dry_run: bool) -> list[Cleared]:
    """Locks whose lease has passed, and locks the index does not list."""
    try:
        listed = {replies.text(raw) for raw in at.command("ZRANGE", at.layout.index, 0, -1)}
    except LatchCorrupt:
        if not dry_run:  # a dry run has repaired nothing above
            raise
        listed = set()
    records = {name for kind, name in map(at.layout.split, _own_keys(at)) if kind == "R"}
    done = []
    for name in sorted(listed | records):
        try:
            listing = at.call(verbs.read(name))
            empty = not listing.holders and not listing.waiters
            if empty != (name in listed):
                continue  # free and unlisted, or held and listed: in order
            if not dry_run:
                at.call(verbs.trim(name))
        except LatchCorrupt:
            if not dry_run:
                raise
            continue  # named above
        what = "expired" if empty else "repaired"
        done.append(Cleared(name=name, what=what, detail="" if empty else "was not in the index"))
    return done


def _own_keys(at: RedisStore) -> list[str]:
    """Every key of ours in the database."""
    cursor, found = "0", set[str]()
    while True:
        cursor, part = at.command("SCAN", cursor, "MATCH", at.layout.pattern, "COUNT", 1000)
        found.update(key.decode("utf-8", "surrogateescape") for key in part)
        if int(cursor) == 0:
            return sorted(found)


def _unreadable(at: RedisStore, key: str) -> list[str]:
    """The tokens in the records `key` whose record no script can read."""
    flat = at.command("HGETALL", key)
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return [
        replies.text(token)
        for token, record in pairs
        if replies.text(token) != "@" and not replies.is_record(replies.text(record))
    ]


def _dead(dry_run: bool, actor: str, using: str | None) -> list[Cleared]:
    """Locks held by a process that is gone."""
    done = []
    try:
        locks, _ = inventory.scan(using=using)
    except LatchCorrupt:
        if not dry_run:
            raise
        return []
    for lock in locks:
        for holder in lock.holders:
            if holder.state != "held" or not holder.owner.provably_dead():
                continue
            try:
                if not dry_run:
                    inventory.clear(
                        lock.name,
                        fence=holder.fence,
                        fingerprint=holder.fingerprint,
                        reason="its process is gone",
                        actor=actor,
                        using=using,
                    )
            except LatchNotHeld:
                continue  # it ended by itself meanwhile
            done.append(
                Cleared(name=lock.name, what="dead", fence=holder.fence, owner=holder.owner)
            )
    return done
