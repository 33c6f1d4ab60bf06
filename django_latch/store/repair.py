"""Keys of ours that hold something else, or never end: found, and put in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django_latch.core import replies
from django_latch.store.layout import WEEK

if TYPE_CHECKING:
    from django_latch.store.redis import RedisStore


def repair(at: RedisStore, *, dry_run: bool) -> list[tuple[str, str]]:
    """Remove keys of a wrong type and unreadable records; give an end to keys without one.

    Parameters:
        dry_run: change nothing, only say what would be done.

    Returns:
        The lock's name, or the key where it is a bucket's; and what was wrong.
    """
    done = []
    for key in own_keys(at):
        kind, name = at.layout.split(key)
        expected = at.layout.type_of(kind)
        found = replies.text(at.command("TYPE", key))
        if found == "none" or expected is None:
            continue
        for problem, mending in _faults(at, key, kind, found, expected):
            if not dry_run:
                at.command(*mending)
            done.append((_shown(name or key), _shown(problem)))
    return done


def _faults(
    at: RedisStore, key: str, kind: str, found: str, expected: str
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """What is wrong with a key, and the command that mends it."""
    if found != expected:
        yield f"{key} was a {found} where a {expected} belongs", ("UNLINK", key)
        return
    if replies.number(at.command("PTTL", key)) == -1:
        yield f"{key} had no end", ("PEXPIRE", key, WEEK)
    if kind == "R" and (broken := _unreadable(at, key)):
        yield f"{key} held {len(broken)} unreadable records", ("HDEL", key, *broken)


def _shown(text: str) -> str:
    """As it can be printed, whatever bytes the key has."""
    return text.encode("utf-8", "backslashreplace").decode()


def recorded(at: RedisStore) -> set[str]:
    """The names of the locks of which there are records, listed or not."""
    return {name for kind, name in map(at.layout.split, own_keys(at)) if kind == "R"}


def own_keys(at: RedisStore) -> list[str]:
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
