"""The header of a message: the key of its call, made once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_latch.celery import current
from django_latch.celery.header import Carried, read
from django_latch.namespace import tenant

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded


def header_for(
    guarded: Guarded,
    task: Any,
    task_id: str,
    headers: Mapping[str, Any] | None,
    args: Any,
    kwargs: Any,
) -> Carried | None:
    """The header of a message: the one it has from an earlier hook, or a new one.

    Parameters:
        guarded, task: the task that is called, and its guard.
        task_id: the message's id.
        headers: its headers so far.
        args, kwargs: its arguments.

    Returns:
        None if the arguments do not fit the task: then the run will say so.

    Raises:
        TypeError, LatchNameError: as `Keys.make` does.
    """
    args, kwargs = args or (), kwargs or {}
    carried = read(headers, task_id)
    if carried and any(run.job.task_id == task_id and run.holding.held for run in current.runs()):
        # A retry by a run that had its turn.
        carried = replace(carried, waits=0, token=None, carries=False)
    if carried and (
        carried.off or (carried.key and not _retries_with_others(task, task_id, args, kwargs))
    ):
        return carried
    keys = guarded.keys(task)
    bound = keys.fitted(args, kwargs)
    if bound is None:
        return None
    space = carried.tenant if carried else tenant()
    key = keys.name(task.name, bound, space)
    made = time.time_ns() // 1000 if guarded.flight.reruns else 0
    return Carried(task_id=task_id, key=key, tenant=space, made=made)


def _retries_with_others(
    task: Any, task_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether the message is a retry, sent by the run itself, with other arguments.

    `retry()` passes on the very objects that it does not replace. An equal object in their place
    costs no more than making the same key again.
    """
    request = task.request
    if request.id != task_id:
        return False
    before, named = request.args or (), request.kwargs or {}
    return not (
        len(args) == len(before)
        and all(new is old for new, old in zip(args, before, strict=True))
        and kwargs.keys() == named.keys()
        and all(kwargs[name] is named[name] for name in named)
    )
