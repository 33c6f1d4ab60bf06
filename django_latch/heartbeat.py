"""One thread per process that renews every lease of the process, in batches.

It also sends what is still owed: an abandon or release that had no answer. It starts with the
first lease, so never before a fork; a child process starts with nothing of its parent's.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from django_latch import native
from django_latch.core import verbs
from django_latch.core.calls import Call, StoreError
from django_latch.core.timing import now

if TYPE_CHECKING:
    from django_latch.hold import Hold
    from django_latch.store.base import Store

logger = logging.getLogger("django_latch")

#: Most renewals in one round trip.
BATCH: Final = 200

#: Most calls kept that had no answer; the oldest go first.
DEBTS: Final = 1000

#: Seconds the thread stays awake for after the last lease has gone.
LINGER: Final = 1.0

#: Longest pause of the thread, in seconds. A lease that is due later does not wake it: that would
#: take time from a holder that has just begun.
IDLE: Final = 10.0

#: Seconds an offer may stay unread before the next waiter is told. request.lua wants 0.02 at least.
NUDGE: Final = 0.025

#: Seconds after an error of the heartbeat's own, which may be there again at once.
STUMBLE: Final = 0.1

#: Seconds for everything that is released at exit.
EXIT_BUDGET: Final = 1.0


#: What the log says of an error that nobody has thought of.
FAULT: Final = "the heartbeat met an error of its own and goes on"


@dataclass(slots=True)
class _Debt:
    store: Store
    call: Call[Any]
    until: float  # afterwards nothing can be left of it in the store
    due: float


class Heartbeat:
    """The leases and debts of one process, and the thread that looks after them."""

    #: Counts forks: a lease of an earlier generation is the parent's.
    generation = 0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: in a forked child nothing here is its own."""
        self._mutex = native.allocate_rlock()
        self._bell = native.allocate_lock()
        self._bell.acquire()
        # By id, not by token: who asks again with a token of their own has two leases of it.
        self._leases: dict[int, weakref.ref[Hold]] = {}
        self._debts: dict[int, _Debt] = {}
        self._nudges: dict[tuple[int, str], _Debt] = {}
        self._running = False
        self._next = float("inf")
        self._added = 0
        self.generation += 1

    def add(self, lease: Hold) -> None:
        """Look after a lease from now on."""
        with self._mutex:
            self._leases[id(lease)] = weakref.ref(lease)
            self._added += 1
            self._expect(lease.due)

    def drop(self, lease: Hold) -> None:
        """Look after it no longer. Takes no lock: a destructor may run anywhere, also in here."""
        self._leases.pop(id(lease), None)

    def owe(self, store: Store, call: Call[Any], seconds: float) -> None:
        """Send `call` as soon as the store answers again, for at most `seconds`.

        May be called by a destructor, so at any point of the other methods, in the same thread.
        """
        debt = _Debt(store, call, now() + seconds, now())
        self._debts[id(debt)] = debt
        with self._mutex:
            for oldest in list(self._debts)[:-DEBTS]:
                self._debts.pop(oldest, None)
            self._expect(debt.due)

    def nudge(self, store: Store, name: str, fence: int) -> None:
        """Look, a moment later, whether the waiter that was offered the lock is alive.

        Only the latest offer of a lock matters: earlier ones were taken, or there were no later.
        """
        due = now() + NUDGE
        debt = _Debt(store, verbs.nudge(name, fence), due, due)
        with self._mutex:
            self._nudges[id(store), name] = debt
            self._expect(due)

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def owing(self) -> int:
        """How many calls are owed that had no answer."""
        return len(self._debts)

    def _expect(self, due: float) -> None:
        if not self._running:
            try:
                self._running = True
                native.start_thread(self._run, "django_latch-heartbeat")
            except BaseException:
                self._running = False
                raise
        if due < self._next:
            # Rung first: interrupted in between, a moment noted without it would silence the rest.
            with suppress(RuntimeError):  # it rings already
                self._bell.release()
            self._next = due

    def _run(self) -> None:
        mutex, seen = self._mutex, 0
        while self._mutex is mutex:  # not after a reset
            least = 0.0
            try:
                self.beat()
            except Exception:
                logger.exception(FAULT)
                least = STUMBLE
            with mutex:
                dues = [lease.due for lease in self._alive()]
                dues += [debt.due for debt in [*self._debts.values(), *self._nudges.values()]]
                if not dues and self._added != seen:
                    # Short leases come and go: look again once, instead of being woken for each.
                    dues = [now() + LINGER]
                seen = self._added
                self._next = min([*dues, now() + IDLE])
                pause = max(self._next - now(), least)
            if pause > 0:
                self._bell.acquire(True, pause)

    def _alive(self) -> list[Hold]:
        return [lease for ref in list(self._leases.values()) if (lease := ref()) is not None]

    def beat(self) -> None:
        """Renew what is due, or will be soon, and pay what is owed."""
        with self._mutex:
            time = now()
            leases = [lease for lease in self._alive() if lease.due - lease.interval / 4 <= time]
            debts = [debt for debt in list(self._debts.values()) if debt.due <= time]
            nudges = {at: debt for at, debt in self._nudges.items() if debt.due <= time}
            for at in nudges:
                del self._nudges[at]
        for group in _by_store([lease for lease in leases if lease.held_here]):
            self._renew(group)
        for due in _by_store(debts):
            self._pay(due)
        for due in _by_store(list(nudges.values())):
            _batch(due[0].store, [debt.call for debt in due], now() + 2.0)

    def _renew(self, leases: Sequence[Hold]) -> None:
        sent = now()
        # Shorter than the interval, so that one lost answer never costs a lease.
        patience = sent + min(max(0.8 * min(lease.interval for lease in leases), 0.1), 5.0)
        calls = [lease.renewal(patience) for lease in leases]
        outcomes = _outcomes(leases[0].store, calls)
        for lease, outcome in zip(leases, outcomes, strict=True):
            lease.heard(outcome, sent)

    def _pay(self, debts: Sequence[_Debt]) -> None:
        outcomes = _batch(debts[0].store, [debt.call for debt in debts], now() + 2.0)
        for debt, outcome in zip(debts, outcomes, strict=True):
            debt.due = now() + 1.0
            if not isinstance(outcome, StoreError) or now() > debt.until:
                self._debts.pop(id(debt), None)

    def close(self) -> None:
        """At exit: release what is held and pay what is owed, within a small budget."""
        debts = [
            _Debt(lease.store, lease.farewell(), 0, 0) for lease in self._alive() if lease.held_here
        ]
        debts += self._debts.values()
        self.reset()
        until = now() + EXIT_BUDGET
        for group in _by_store(debts):
            for outcome in _batch(group[0].store, [debt.call for debt in group], until):
                if isinstance(outcome, Exception):
                    logger.warning("a lock could not be released at exit: %s", outcome)


class _Stored(Protocol):
    @property
    def store(self) -> Store:
        """Where it lives."""


S = TypeVar("S", bound=_Stored)


def _by_store(items: Sequence[S]) -> list[list[S]]:
    """Groups of one store each, small enough for one round trip."""
    groups: dict[int, list[S]] = defaultdict(list)
    for item in items:
        groups[id(item.store)].append(item)
    return [
        group[start : start + BATCH]
        for group in groups.values()
        for start in range(0, len(group), BATCH)
    ]


def _batch(store: Store, calls: list[Call[Any]], until: float) -> list[Any]:
    """Run calls until then; no answer is an outcome."""
    timed = [replace(call, until=until) for call in calls]
    return _outcomes(store, timed)


def _outcomes(store: Store, calls: list[Call[Any]]) -> list[Any]:
    """Run calls. Any error is no answer: other stores' leases and debts still need theirs."""
    try:
        return store.batch(calls)
    except StoreError as error:
        return [error] * len(calls)
    except Exception as error:
        logger.exception(FAULT)
        problem = type(error).__name__
        none = StoreError(problem, reason="connection", unanswered=True, again=True)
        return [none] * len(calls)


heartbeat = Heartbeat()
os.register_at_fork(after_in_child=heartbeat.reset)
atexit.register(heartbeat.close)
