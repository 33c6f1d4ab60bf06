"""The guard's mark on a function, and how to find it again from a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from django_latch.celery.keys import Keys

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight

_MARK: Final = "__single_flight__"


class Guarded:
    """A function under the guard of a `SingleFlight`.

    Parameters:
        flight: the options.
        function: the function as it was before.
        bound: whether the task is its first argument, and so no argument of a call; None while
            only the task that it becomes part of will tell.
    """

    def __init__(
        self, flight: SingleFlight, function: Callable[..., Any], *, bound: bool | None
    ) -> None:
        self.flight = flight
        self.label = f"{function.__module__}.{function.__qualname__}"
        self._bound = bound
        self._keys = {binds: Keys(flight, function, bound=binds) for binds in (False, True)}

    @property
    def placed_above(self) -> bool:
        """Whether calls pass our ``apply_async``, which makes the key of a message."""
        return self._bound is not None

    def binds(self, task: Any) -> bool:
        """Whether `task` is the first argument of the function; None stands for no task at all."""
        if self._bound is not None or task is None:
            return bool(self._bound)
        return is_bound(type(task))

    def keys(self, task: Any) -> Keys:
        """What makes the keys for calls of `task`."""
        return self._keys[self.binds(task)]

    def mark(self, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        """Let `of` find this from `wrapper`."""
        setattr(wrapper, _MARK, self)
        return wrapper

    @staticmethod
    def of(function: Any) -> Guarded | None:
        """The guard of a function; None if it has none."""
        found = getattr(function, _MARK, None)
        return found if isinstance(found, Guarded) else None


def guarded_of(task: Any) -> Guarded | None:
    """The guard that a task runs under; None if it has none."""
    # autoretry keeps the function that it wraps in an attribute of its own
    return Guarded.of(getattr(task, "_orig_run", None) or task.run)


def is_bound(task_class: type) -> bool:
    """Whether the task is the first argument of its own function."""
    return not isinstance(inspect.getattr_static(task_class, "run"), staticmethod)
