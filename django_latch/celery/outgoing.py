"""The header of a message about to be sent, and our part of ``apply_async``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celery.utils import uuid

from django_latch.celery import current
from django_latch.celery.header import HEADER, Carried, read
from django_latch.namespace import tenant

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded


def apply_async(
    guarded: Guarded,
    task: Any,
    original: Callable[..., Any],
    args: Any,
    kwargs: Any,
    options: dict[str, Any],
) -> Any:
    """Make the call's key, then send the message with it.

    Parameters:
        guarded: the task's guard.
        task: the task.
        original: the task's own ``apply_async``.
        args, kwargs, options: as Celery's ``apply_async`` takes them, and in `options`
            ``single_flight``: False lets this call, and its retries, run without the lock.

    Returns:
        what `original` returns.

    Raises:
        TypeError: Celery's own check of the arguments fails; or an argument cannot be part of a key.
        LatchNameError: the key made is no valid name.
    """
    enabled = options.pop("single_flight", True)
    if not isinstance(enabled, bool):
        raise TypeError(f"single_flight must be True or False, not {enabled!r:.80}")
    task_id = options["task_id"] = options.get("task_id") or uuid()
    if not enabled:
        carried: Carried | None = Carried(task_id=task_id, off=True)
    elif task.app.conf.task_always_eager:  # the run makes the key, in this very process
        carried = read(options.get("headers"), task_id)
    else:
        _check_arguments(task, args, kwargs)
        carried = header_for(guarded, task, task_id, options.get("headers"), args, kwargs)
    headers = {k: v for k, v in (options.get("headers") or {}).items() if k != HEADER}
    if carried is not None:
        headers[HEADER] = carried.to_header()
    if headers or options.get("headers"):
        options["headers"] = headers
    return original(args, kwargs, **options)


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
        carried = replace(carried, waits=0)  # a retry by a run that had its turn
    if carried and (
        carried.off or (carried.key and not _retries_with_others(task, task_id, args, kwargs))
    ):
        return carried
    keys = guarded.keys(task)
    if not keys.accepts(args, kwargs):
        return None
    space = carried.tenant if carried else tenant()
    key = keys.make(task.name, args, kwargs, space)
    return Carried(task_id=task_id, key=key, tenant=space)


def _check_arguments(task: Any, args: Any, kwargs: Any) -> None:
    """Celery's own check, made early: its message about wrong arguments must come first."""
    check = getattr(task, "__header__", None)  # tasks that are classes have none
    if task.typing and check is not None:
        check(*(args or ()), **(kwargs or {}))


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
