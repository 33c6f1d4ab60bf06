"""Who asks, what they may do, and how much of it at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, Self, TypeVar

from django_latch.api.problems import Problem
from django_latch.core.calls import Call, Park
from django_latch.core.verbs import account as counted
from django_latch.store.base import AsyncStore

T = TypeVar("T")

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


class Waits:
    """The store of one acquire: counts it among its account's waits, once it does wait.

    A lock that is free, a full queue and a try are no waits. The count is this process's own,
    whose tasks and connections the limit protects.

    Parameters:
        most: how many requests of the account may wait.
    """

    def __init__(self, store: AsyncStore, account: Account, most: int) -> None:
        self._store, self._name, self._most = store, account.name, most
        self._counted = False

    def wake_id(self) -> str:
        """As the store's."""
        return self._store.wake_id()

    async def call(self, call: Call[T]) -> T:
        """As the store's."""
        return await self._store.call(call)

    async def park(self, park: Park[T]) -> tuple[T, int]:
        """As the store's.

        Raises:
            Problem: `too_many_waits`.
        """
        if not self._counted:
            if _waits[self._name] >= self._most:
                raise too_many("too_many_waits", "waits", self._most)
            _waits[self._name] += 1
            self._counted = True
        return await self._store.park(park)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._counted:
            _waits[self._name] -= 1
            if not _waits[self._name]:
                del _waits[self._name]
