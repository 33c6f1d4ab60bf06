"""A cell of the table: one exit, in one column, for one kind of lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest
from celery import Celery
from celery.result import AsyncResult
from kombu import Connection

from django_latch import Latch
from tests.celery import harness
from tests.celery.harness import Label, until
from tests.exits import app
from tests.exits.columns import Column, Workers, columns, options, serving

#: What a bound may be exceeded by on a busy machine, in seconds.
SLACK = 2.0

#: Every result that was asked for. If one is thrown away in the middle of another call, Celery 5.4
#: unsubscribes while it subscribes, and waits for itself for ever.
_results: list[AsyncResult] = []


@dataclass(frozen=True)
class Bound:
    """How soon a lock is free: between two numbers of seconds after the exit."""

    name: str
    least: float
    most: float


AT_ONCE = Bound("at once", 0, SLACK)
#: A killed child: its parent looks every half second, and leaves half a second of grace.
SOON = Bound("about 1 s", 0.4, 2 + SLACK)
#: The same from the moment the result is there: the child may have been dead for some time.
SOON_AFTER_THAT = Bound("about 1 s", 0, 2 + SLACK)


def after(remaining: float, ttl: float = app.SHORT) -> Bound:
    """The bound of a lease that nobody shortens.

    Parameters:
        remaining: seconds that it had left at the exit.
        ttl: its TTL.
    """
    return Bound("TTL", remaining - 0.1, ttl + SLACK)


@dataclass(frozen=True)
class Spec:
    """Which cell: the row's name, the column, and where the lock is taken."""

    row: str
    column: Column
    at: str

    def __str__(self) -> str:
        return f"{self.column}-{self.at}"


def exits(
    row: str, *pools: str, at: tuple[str, ...] = ("run", "both"), only: str = ""
) -> pytest.MarkDecorator:
    """Mark a test as a row of the table.

    Parameters:
        row: the row's name.
        pools: the pools that have this exit.
        at: where the lock is taken.
        only: the broker that has this exit, if not both have.
    """
    cells = [
        Spec(row, column, place)
        for place in at
        for column in columns(*pools)
        if not only or column.broker == only
    ]
    return pytest.mark.parametrize("cell", cells, indirect=True, ids=str)


class Cell:
    """What a test does in its cell.

    Parameters:
        spec: which cell.
        label: the marks and the gate of the test.
        workers: the shared workers.
        record: takes the measured time, for the table.
    """

    def __init__(
        self, spec: Spec, label: Label, workers: Workers, record: Callable[[str, Any], None]
    ) -> None:
        self.spec = spec
        self.label = label
        self.name = f"exit:{label}"
        self._workers = workers
        self._record = record
        self._own: harness.Worker | None = None
        self._url = spec.column.url()
        #: The workers it had to do with, for the report of a failure.
        self.seen: list[harness.Worker] = []

    @property
    def pool(self) -> str:
        """The pool's name."""
        return self.spec.column.pool

    @property
    def redis(self) -> bool:
        """Whether Redis is the broker."""
        return self.spec.column.broker == "redis"

    @property
    def worker(self) -> harness.Worker:
        """The worker of this cell: its own if it has one, else the column's."""
        found = self._own or self._workers[self.spec.column]
        if found not in self.seen:
            self.seen.append(found)
        return found

    def own_worker(
        self,
        *,
        queue: str | None = None,
        conf: dict[str, Any] | None = None,
        hasty: bool = False,
        **more: Any,
    ) -> AbstractContextManager[harness.Worker]:
        """A worker of the test's own, for an exit that it does not survive.

        Parameters:
            queue: its queue, if not a new one.
            conf: more Celery settings.
            hasty: whether it, and the test from now on, has the broker that believes messages
                lost soon.
            more: for `harness.worker`.
        """
        self._url = self.spec.column.url(hasty=hasty)
        given = options(self.spec.column, conf, hasty=hasty)
        given["env"].update(more.pop("env", {}))
        return serving(self.spec.column, queue, **{**given, **more})

    def use(self, worker: harness.Worker) -> None:
        """Send to this worker from now on."""
        self._own = worker

    def task(self, kind: str = "plain", ttl: float = app.LONG) -> Any:
        """The task of a kind with the lock of this cell."""
        return app.TASKS[self.spec.at, kind, ttl]

    def send(
        self, how: str = "success", *, kind: str = "plain", ttl: float = app.LONG, **more: Any
    ) -> AsyncResult:
        """Call the task; see `tests.exits.app` for what it may be told.

        Parameters:
            how: how it shall end.
            kind, ttl: which task.
            more: for ``apply_async``; and ``label``, for a call that is not the one watched.
        """
        label = str(more.pop("label", self.label))
        queue = more.pop("queue", None) or self.worker.queue
        with self.connection() as connection:
            sent: AsyncResult = self.task(kind, ttl).apply_async(
                (label, how), queue=queue, **{"connection": connection, **more}
            )
        _results.append(sent)
        return sent

    def connection(self) -> Connection:
        """To the broker of this cell."""
        return Connection(self._url)

    def revoke(self, sent: AsyncResult | str, **more: Any) -> None:
        """Revoke a task, and wait until the worker has heard of it.

        Parameters:
            sent: the task's result, or its id.
            more: for ``control.revoke``.
        """
        self._command("revoke", str(sent), **more)

    @property
    def parked(self) -> str:
        """A queue that nobody serves until `unpark`."""
        return f"parked-{self.label}"

    def unpark(self) -> None:
        """Let the worker serve the parked queue too."""
        self._command("add_consumer", self.parked)

    def _command(self, name: str, *args: Any, **more: Any) -> None:
        # An app of its own: commands go to the broker of their app, whatever connection is given.
        sender = Celery(broker=self._url, set_as_current=False)
        more = {"destination": [self.worker.name], "reply": True, "limit": 1, "timeout": 3, **more}
        # Once more if need be: on a busy machine a worker is ready some time before it listens.
        until(lambda: getattr(sender.control, name)(*args, **more))

    def started(self) -> dict[str, Any]:
        """Wait until the task runs."""
        return self.label.next("start")

    def go(self) -> None:
        """Let the task go on."""
        self.label.open()

    def ended(self) -> float:
        """Wait until the task's function has ended; when it did."""
        return float(self.label.next("end")["at"])

    def remaining(self) -> float:
        """Seconds that the lease has left."""
        seen = Latch(self.name).inspect()
        assert seen is not None, "nobody has the lock"
        assert seen.holder is not None
        return seen.holder.expires_in

    def held(self) -> bool:
        """Whether somebody has the lock."""
        seen = Latch(self.name).inspect()
        return seen is not None and seen.holder is not None

    def free(self, since: float, bound: Bound) -> None:
        """Somebody else can have the lock within the bound; the time goes into the table.

        Parameters:
            since: when the exit was, in seconds since the epoch.
            bound: how soon it must be free.
        """
        with until(Latch(self.name, timeout=0).try_acquire, bound.most + harness.PATIENCE):
            self.judge(time.time() - since, bound)

    def runs_again(self, since: float, bound: Bound) -> dict[str, Any]:
        """The job's next run begins within the bound; the time goes into the table."""
        event = self.started()
        self.judge(float(event["at"]) - since, bound)
        return event

    def judge(self, took: float, bound: Bound) -> None:
        """Compare a time with its bound, and note it for the table."""
        spec = self.spec
        facts = {"row": spec.row, "pool": spec.column.pool, "broker": spec.column.broker}
        self._record("exits", {**facts, "at": spec.at, "seconds": took, "bound": bound.name})
        assert bound.least <= took <= bound.most, f"free after {took:.2f} s, not {bound}"
