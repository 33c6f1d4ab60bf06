"""A lock store in the memory of one process, for test suites: no server, and a clock to advance."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, Final, TypeVar

from django_latch.conf import conf
from django_latch.core import snapshot
from django_latch.core.calls import Call, Glance, Park, Watch
from django_latch.core.model import Model
from django_latch.core.model_snapshot import NEWS
from django_latch.core.model_state import Terms
from django_latch.core.timing import milliseconds, now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchValueError
from django_latch.store.base import EVENT_LEVELS, Codec
from django_latch.store.codec import PickleCodec

T = TypeVar("T")

#: Calls between two times that memory is freed of what has ended.
TIDY: Final = 1000


class MemoryStore:
    """Locks among the threads and tasks of this process; see `Store`.

    Other processes see nothing of them. A child process begins with an empty store.

    Parameters:
        clock: the time in seconds. Default: that of the system, but it never goes back.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._mutex = threading.Lock()
        self._model = Model()
        begun = time.time() - now()
        self._clock = clock or (lambda: begun + now())
        self._ahead = 0.0
        self._calls = 0
        self._sleepers: dict[str, Callable[[], None]] = {}  # by wake list: what rings there
        self._watchers: dict[str, set[Callable[[], None]]] = {}  # the same for news
        self.codec: Codec = PickleCodec()
        self.version = 1
        self.patience = math.inf
        self._twin = AsyncMemoryStore(self)

    # For tests

    def advance(self, seconds: float) -> None:
        """Let time pass for the store alone: leases and offers end, and waiters look again.

        A lease's own deadline, in the process that holds it, does not move. As after a pause of
        the process, it hears of its loss at its next renewal.

        Raises:
            LatchValueError: the time is negative.
        """
        if seconds < 0:
            raise LatchValueError(f"time goes forward only, not by {seconds:g} seconds")
        with self._mutex:
            self._ahead += seconds
            self._wake_all()

    def flush(self) -> None:
        """Lose everything, as a server does that is flushed or restarted."""
        with self._mutex:
            self._model = Model()
            self._wake_all()

    def _wake_all(self) -> None:
        for ring in [*self._sleepers.values(), *chain(*self._watchers.values())]:
            ring()

    # The calls

    def wake_id(self) -> str:
        """A wake list for one acquisition."""
        return new_token()[:16]

    def call(self, call: Call[T]) -> T:
        """Carry out a call."""
        with self._mutex:
            return self._run(call)

    def pipeline(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Carry out several."""
        return [self.call(call) for call in calls]

    batch = pipeline

    def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait for a wake message or the end of the slice, then carry out the call."""
        woken = threading.Event()
        message = self.enter(park.wake, woken.set)
        try:
            if message is None:
                woken.wait(max(park.until - now(), 0))
        finally:
            message = self.leave(park.wake) or message
        return self.call(park.call), silent(message)

    def glance(self, glance: Glance) -> snapshot.Seen | None:
        """Read a snapshot's value, if it is fresh; see `snapshot.glanced`."""
        seen = self.call(snapshot.look(glance.name, glance.field.removeprefix("v:")))
        return {"hit": seen, "miss": snapshot.NOTHING}.get(seen.state)

    def watch(self, watch: Watch) -> snapshot.Seen | None:
        """Wait for news of a snapshot, or for the end of the slice; then glance at it."""
        woken = threading.Event()
        with self.watching(watch, woken.set) as waits:
            if waits:
                woken.wait(max(watch.until - now(), 0))
        return self.glance(watch.glance)

    @contextmanager
    def watching(self, watch: Watch, ring: Callable[[], None]) -> Iterator[bool]:
        """Have `ring` called at news of a snapshot; False where there are some already."""
        key = NEWS + watch.glance.name
        with self._mutex:
            kept = self._model.bucket.snapshots.get(watch.glance.name)
            waits = watch.since == str(kept.news if kept else 0)
            self._watchers.setdefault(key, set()).add(ring)
        try:
            yield waits
        finally:
            with self._mutex:
                self._watchers[key].discard(ring)
                if not self._watchers[key]:
                    del self._watchers[key]

    def enter(self, wake: str, ring: Callable[[], None]) -> str | None:
        """Have `ring` called when a message comes; one that is there already is taken."""
        with self._mutex:
            self._sleepers[wake] = ring
            return self._model.read_wake(wake, self._us())

    def leave(self, wake: str) -> str | None:
        """Have nothing called any more; take the message that came."""
        with self._mutex:
            del self._sleepers[wake]
            return self._model.read_wake(wake, self._us())

    def twin(self) -> AsyncMemoryStore:
        """The same store for event loops."""
        return self._twin

    def repair(self, *, dry_run: bool) -> list[tuple[str, str]]:
        """Nothing here can be of a wrong type."""
        return []

    def recorded(self) -> set[str]:
        """The names of the locks of which there are records."""
        with self._mutex:
            locks = self._model.bucket.locks
            return {name for name, lock in locks.items() if lock.records}

    # Under the mutex

    def _us(self) -> int:
        return round((self._clock() + self._ahead) * 1_000_000)

    def _run(self, call: Call[T]) -> T:
        settings = conf.load()
        terms = Terms(
            grace=milliseconds(settings.grace),
            live=milliseconds(settings.live),
            events=EVENT_LEVELS[settings.events],
            events_max=settings.events_max,
        )
        self._calls += 1
        if self._calls % TIDY == 0:
            self._model.forget(self._us())
        outcome = self._model.run(call, self._us(), terms)
        for wake in outcome.woken:
            if wake in self._sleepers:
                self._sleepers[wake]()
            for ring in self._watchers.get(wake, ()):
                ring()
        return outcome.reply


def silent(message: str | None) -> int:
    """The fence that a wake message names beside its token, or 0."""
    return int((message or "").partition(" ")[2] or 0)


class AsyncMemoryStore:
    """The memory store for tasks; see `AsyncStore`.

    Parameters:
        store: where the locks are.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def wake_id(self) -> str:
        """A wake list for one acquisition."""
        return self._store.wake_id()

    async def call(self, call: Call[T]) -> T:
        """Carry out a call. Takes no longer than other calls of the loop."""
        return self._store.call(call)

    async def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait for a wake message or the end of the slice, then carry out the call."""
        woken, ring = _bell()
        message = self._store.enter(park.wake, ring)
        try:
            if message is None:
                async with asyncio.timeout(max(park.until - now(), 0)):
                    await woken.wait()
        except TimeoutError:
            pass  # the slice has ended
        finally:
            message = self._store.leave(park.wake) or message
        return self._store.call(park.call), silent(message)

    async def glance(self, glance: Glance) -> snapshot.Seen | None:
        """Read a snapshot's value, if it is fresh."""
        return self._store.glance(glance)

    async def watch(self, watch: Watch) -> snapshot.Seen | None:
        """Wait for news of a snapshot, or for the end of the slice; then glance at it."""
        woken, ring = _bell()
        with self._store.watching(watch, ring) as waits, suppress(TimeoutError):
            if waits:
                async with asyncio.timeout(max(watch.until - now(), 0)):
                    await woken.wait()
        return self._store.glance(watch.glance)


def _bell() -> tuple[asyncio.Event, Callable[[], None]]:
    """An event of this loop, and what sets it from any thread."""
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def ring() -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(woken.set)

    return woken, ring
