"""The functions that stand in for a task's ``run`` and ``apply_async``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from celery import current_task

from django_latch.celery import guard, outgoing
from django_latch.celery.guarded import Guarded, guarded_of


def function(guarded: Guarded, original: Callable[..., Any]) -> Callable[..., Any]:
    """Guard a function that will become a task, or not: which one, is known at a call only."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        task = current_task._get_current_object()
        if task is None or guarded_of(task) is not guarded:
            # A plain call, or a decorator between us and the task that hides us from it.
            return guard.run(guarded, None, original, args, kwargs)
        if guarded.binds(task):
            return guard.run(guarded, task, partial(original, args[0]), args[1:], kwargs)
        return guard.run(guarded, task, original, args, kwargs)

    return _disguise(wrapper, original, guarded)


def run_of_task(guarded: Guarded, original: Callable[..., Any], task: Any) -> Callable[..., Any]:
    """Guard the ``run`` of a task that exists."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return guard.run(guarded, task, original, args, kwargs)

    return _disguise(wrapper, original, guarded)


#: What may follow `args` and `kwargs` by position in Celery's ``apply_async``.
_POSITIONAL = ("task_id", "producer", "link", "link_error", "shadow")


def apply_async_of_task(guarded: Guarded, task: Any) -> Callable[..., Any]:
    """The ``apply_async`` of a task that exists; it calls the project's own, if there is one."""
    original = task.apply_async

    def apply_async(args: Any = None, kwargs: Any = None, *more: Any, **options: Any) -> Any:
        options = {**dict(zip(_POSITIONAL, more, strict=False)), **options}
        return outgoing.apply_async(guarded, task, original, args, kwargs, options)

    return update_wrapper(apply_async, original)


def _disguise(
    wrapper: Callable[..., Any], original: Callable[..., Any], guarded: Guarded
) -> Callable[..., Any]:
    """Make `wrapper` look like `original`.

    Celery's argument check reads ``__signature__`` but does not follow ``__wrapped__``; and the
    setting ``task_annotations`` would replace what it finds in ``__wrapped__`` around us.
    """
    update_wrapper(wrapper, original)
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    wrapper.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    return guarded.mark(wrapper)
