"""The keys: how they are called, and what each must be."""

from __future__ import annotations

from typing import Final

from django_latch.store.scripts import KEYS

#: Schema number in every key. A release that changes the records counts it up.
SCHEMA: Final = 1

#: A week in milliseconds: how long a bucket's keys outlive what they hold.
WEEK: Final = 604_800_000

_TYPES: Final = {
    "R": "hash",
    "stamp": "string",
    "events": "stream",
    "W": "list",
    "waits": "hash",
    "J": "hash",
    "A": "zset",
    "S": "hash",
    "N": "stream",
    "snapshots": "zset",
}


class Layout:
    """The keys of one project.

    Parameters:
        prefix: what every key begins with.
    """

    def __init__(self, prefix: str) -> None:
        #: What the keys of the bucket begin with; the part in braces is their hash tag.
        self.bucket = f"{prefix}:{SCHEMA}:{{00}}:"
        self.index = self.bucket + "index"
        self.due = self.bucket + "due"
        self.events = self.bucket + "events"
        self.snapshots = self.bucket + "snapshots"

    def keys(self, name: str) -> list[str]:
        """The keys every script declares, for the lock `name`."""
        return [self.bucket + (kind if len(kind) > 1 else f"{kind}:{name}") for kind in KEYS]

    def key(self, kind: str, name: str) -> str:
        """The key of one kind of the lock `name`."""
        return f"{self.bucket}{kind}:{name}"

    def snapshot_keys(self, name: str) -> list[tuple[str, str]]:
        """Kind and key of what belongs to the snapshot `name` alone; the scripts make them too."""
        return [("S", self.key("S", name)), ("N", self.news(name)), ("snapshots", self.snapshots)]

    def news(self, name: str) -> str:
        """The stream on which those who wait for a snapshot hear that it has changed."""
        return self.key("N", name)

    def wake_list(self, wake: str) -> str:
        """The list on which a waiter hears of its turn."""
        return f"{self.bucket}W:{wake}"

    @property
    def pattern(self) -> str:
        """Matches every key of ours, for SCAN."""
        return "".join(f"\\{c}" if c in "*?[]\\^" else c for c in self.bucket) + "*"

    def split(self, key: str) -> tuple[str, str]:
        """Kind and lock name of a key of ours; no name for a bucket's own."""
        kind, _, name = key.removeprefix(self.bucket).partition(":")
        return kind, name

    @staticmethod
    def type_of(kind: str) -> str | None:
        """The type of the keys of a kind; None for a kind that is not ours."""
        return _TYPES.get(kind, "zset" if kind in KEYS else None)
