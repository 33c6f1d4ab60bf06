"""``task.single_flight``: ask about a task's locks from outside a run."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from celery import current_app

from django_latch.celery import queued
from django_latch.celery.checks import import_tasks
from django_latch.celery.explain import Explanation, explain
from django_latch.celery.guarded import guarded_of
from django_latch.exceptions import LatchValueError
from django_latch.locks import Latch
from django_latch.namespace import tenant
from django_latch.report import report

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded
    from django_latch.celery.options import SingleFlight


class Handle:
    """The locks of one task. Each method takes the arguments of a call of the task.

    Parameters:
        guarded: the task's guard.
        task: the task.
    """

    def __init__(self, guarded: Guarded, task: Any) -> None:
        self._guarded = guarded
        self._task = task

    @property
    def options(self) -> SingleFlight:
        """The options of the task's single flight."""
        return self._guarded.flight

    def __repr__(self) -> str:
        return f"<single_flight of {self._task.name}>"

    def key(self, *args: Any, **kwargs: Any) -> str:
        """The name of the lock that a call with these arguments takes.

        Raises:
            TypeError: the arguments do not fit the task, or cannot be part of a name.
            LatchNameError: the key made of them is no valid name.
        """
        return self._guarded.keys(self._task).make(self._task.name, args, kwargs, tenant())

    def lock(self, *args: Any, **kwargs: Any) -> Latch:
        """A latch for the same lock, to keep the task from running or to look at its holder.

        Raises:
            TypeError, LatchNameError: as `key` does.
        """
        return Latch.exact(self.key(*args, **kwargs), ttl=self.options.ttl)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Why a call with these arguments would run now or not: lock, holder, queue, last events.

        Returns:
            an object with `as_dict()`, `lines()` and a readable `str()`.

        Raises:
            TypeError, LatchNameError: as `key` does.
            LatchUnavailable: the lock store cannot be reached.
        """
        return explain(self._task.name, self.options, report(self.key(*args, **kwargs)))

    def is_running(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a run of this call, or somebody else's code, holds its lock now.

        A job that only waits in its queue does not count; nor does a run with ``at="enqueue"``,
        which holds no lock.

        Raises:
            TypeError, LatchNameError: as `key` does.
            LatchUnavailable: the lock store cannot be reached.
        """
        seen = self.lock(*args, **kwargs).inspect()
        return seen is not None and any(
            holder.state == "held" and not queued.waits(holder.owner) for holder in seen.holders
        )


def handle_of(name: str) -> Handle:
    """The ``single_flight`` of a task of the current app.

    Parameters:
        name: the task's full name.

    Raises:
        LatchValueError: there is no such task, or it has no single flight.
    """
    import_tasks(current_app)
    task = current_app.tasks.get(name)
    if task is None:
        known = sorted(current_app.tasks)
        near = [one for one in known if one.endswith(f".{name}")] or get_close_matches(name, known)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise LatchValueError(f"the Celery app {current_app.main!r} has no task {name!r}{hint}")
    guarded = guarded_of(task)
    if guarded is None:
        raise LatchValueError(f"the task {name!r} has no single flight")
    return Handle(guarded, task)
