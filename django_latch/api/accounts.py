"""Who asks, what they may do, and how much of it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from django_latch.api.problems import Problem
from django_latch.core.calls import Call
from django_latch.core.verbs import account as counted

#: The scope that every key is in.
EVERYTHING: Final = "*"

Right = Literal["read", "write", "force"]


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks.

    Attributes:
        name: stands before the label of every holder, and binds the tokens.
        scopes: starts of keys, of whole segments between colons; ``*`` is every key.
        rights: read (inspect, list, queue), write (acquire, renew, release), force.
    """

    name: str
    scopes: tuple[str, ...]
    rights: frozenset[Right]

    def covers(self, key: str) -> bool:
        """Whether the key is in scope: ``sync`` covers ``sync`` and ``sync:42``, not ``synced``."""
        return any(
            scope == EVERYTHING or key == scope or key.startswith(scope + ":")
            for scope in self.scopes
        )

    def require(self, right: Right, key: str | None) -> None:
        """Refuse what this account may not do.

        Raises:
            Problem: `forbidden` or `out_of_scope`.
        """
        if right not in self.rights:
            raise Problem("forbidden", f"The account {self.name!r} has no right to {right}.")
        if key is not None and not self.covers(key):
            raise Problem("out_of_scope", f"{key!r} is in no scope of this account.")

    def stored(self, key: str, token: str) -> str:
        """The token as the store knows it: it serves this account and this key only.

        One-way, so whoever reads the store learns no secret of a client.
        """
        secret = "\0".join((self.name, key, token))
        return sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()

    @property
    def mark(self) -> str:
        """The account in the name of a Redis key."""
        return sha256(self.name.encode("utf-8", "backslashreplace")).hexdigest()[:32]

    def holds(self, key: str, member: str, most: int, seconds: float) -> Call[int]:
        """Count a lease of this account for so many seconds; `most` 0 takes it out."""
        return counted(key, self.mark, member, most, seconds)


def too_many(code: str, policy: str, most: int) -> Problem:
    """The account's own limit, which is not the queue's."""
    return Problem(
        code,
        f"This account has {most} of them, the most allowed.",
        headers={
            "RateLimit-Policy": f'"{policy}";q={most}',
            "RateLimit": f'"{policy}";r=0',
        },
    )


_waits: Counter[str] = Counter()


@contextmanager
def waiting(account: Account, most: int) -> Iterator[None]:
    """Count a request that may wait, in this process.

    Raises:
        Problem: `too_many_waits`.
    """
    if _waits[account.name] >= most:
        raise too_many("too_many_waits", "waits", most)
    _waits[account.name] += 1
    try:
        yield
    finally:
        _waits[account.name] -= 1
        if not _waits[account.name]:
            del _waits[account.name]
