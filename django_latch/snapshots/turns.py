"""Threads of one process that want the same value: one asks for it, and the others wait for that.

Where there is no value, each caller's question costs the server a script, and the process a
connection that is blocked until there is one. One of each is enough for a process. Tasks of an
event loop share a connection anyway.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from django_latch.core.timing import now

if TYPE_CHECKING:
    from django_latch.core.snapshot import Seen

Key = tuple[int, str, str]  # of a shape of a snapshot, among all stores of this process


class Turn:
    """One thread's asking and waiting, whose end other threads wait for.

    Parameters:
        until: when its time is spent. An interrupted thread may leave its turn behind; from then on
            nobody takes notice of it.

    Attributes:
        seen: what the server has told last.
    """

    def __init__(self, until: float) -> None:
        self.until = until
        self.seen: Seen | None = None
        self._over = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait until it is over, at most so many seconds, or until its time is spent."""
        self._over.wait(max(min(seconds, self.until - now()), 0.0))

    def end(self) -> None:
        """Let the others go on."""
        self._over.set()


class Turns:
    """Which snapshots are asked for just now."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: a forked child has none of these threads."""
        self._mutex = threading.Lock()
        self._turns: dict[Key, Turn] = {}

    def begin(self, key: Key, turn: Turn) -> Turn:
        """Begin a turn, unless another one goes on; the one that does."""
        with self._mutex:
            found = self._turns.get(key)
            if found is None or found.until <= now():
                self._turns[key] = found = turn
            return found

    def end(self, key: Key, turn: Turn) -> None:
        """The caller has a value, goes to compute one, or has given up."""
        with self._mutex:
            if self._turns.get(key) is turn:
                del self._turns[key]
        turn.end()


turns: Final = Turns()
os.register_at_fork(after_in_child=turns.reset)
