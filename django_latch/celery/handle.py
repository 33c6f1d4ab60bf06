"""``task.single_flight``: ask about a task's locks from outside a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_latch.celery import queued
from django_latch.celery.explain import Explanation, explain
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
