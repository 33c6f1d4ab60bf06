"""The header of a message about to be sent, and our part of ``apply_async``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from celery.utils import uuid

from django_latch.celery import current, enqueue
from django_latch.celery.header import HEADER, Carried, read
from django_latch.namespace import tenant

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A call on its way to the broker.

    Parameters:
        guarded: the task's guard.
        task: the task.
        original: the task's own ``apply_async``.
        args, kwargs, options: as Celery's ``apply_async`` takes them; the options have a task id.
        carried: our header; None: none.
    """

    guarded: Guarded
    task: Any
    original: Callable[..., Any]
    args: Any
    kwargs: Any
    options: dict[str, Any]
    carried: Carried | None

    @property
    def name(self) -> str:
        """The task's name."""
        return str(self.task.name)

    @property
    def key(self) -> str | None:
        """The lock's name."""
        return self.carried.key if self.carried else None

    @property
    def task_id(self) -> str:
        """The id of the message."""
        return str(self.options["task_id"])

    def send(self) -> Any:
        """Publish it, and return what ``apply_async`` returns."""
        options, given = dict(self.options), self.options.get("headers")
        headers = {name: value for name, value in (given or {}).items() if name != HEADER}
        if self.carried is not None:
            headers[HEADER] = self.carried.to_header()
        if headers or given:
            options["headers"] = headers
        try:
            return self.original(self.args, self.kwargs, **options)
        except BaseException:
            for run in current.runs():
                if run.job.task_id == self.task_id:
                    run.holding.take_back()
            raise


def apply_async(
    guarded: Guarded,
    task: Any,
    original: Callable[..., Any],
    args: Any,
    kwargs: Any,
    options: dict[str, Any],
) -> Any:
    """Make the call's key, take the lock if that is to be done now, then send the message.

    Parameters:
        guarded, task, original, args, kwargs, options: as for `Outgoing`; and in `options`
            ``single_flight``: False lets this call, and its retries, run without the lock.

    Returns:
        what `original` returns; or, where nothing was sent, the result of the job that is there.

    Raises:
        TypeError: Celery's own check of the arguments fails, or one cannot be part of a key.
        LatchNameError: the key made is no valid name.
        LatchBusy, LatchUnavailable: as the options say for the side ``"enqueue"``.
    """
    enabled = options.pop("single_flight", True)
    if not isinstance(enabled, bool):
        raise TypeError(f"single_flight must be True or False, not {enabled!r:.80}")
    task_id = options["task_id"] = options.get("task_id") or uuid()
    locks = False
    if not enabled:
        carried: Carried | None = Carried(task_id=task_id, off=True)
    elif task.app.conf.task_always_eager:  # the run makes the key, in this very process
        carried = read(options.get("headers"), task_id)
    else:
        _check_arguments(task, args, kwargs)
        locks = guarded.flight.at != "run" and not _passes(task_id, options)
        carried = header_for(guarded, task, task_id, options.get("headers"), args, kwargs)
    call = Outgoing(
        guarded=guarded,
        task=task,
        original=original,
        args=args,
        kwargs=kwargs,
        options=options,
        carried=carried,
    )
    return enqueue.send(call, carried) if locks and carried else call.send()


def _passes(task_id: str, options: Mapping[str, Any]) -> bool:
    """Whether a message takes no lock when it is sent.

    Retries, and messages sent again, belong to a job that had its turn here. A signature that was
    frozen (it has a ``reply_to``), as all members of chains, groups and chords are, has an id that
    somebody may wait for already: to decline it would leave them waiting for ever.
    """
    return bool(
        options.get("retries")
        or read(options.get("headers"), task_id)
        or any(name in options for name in ("reply_to", "chain"))
        or options.get("chord")
        or options.get("group_id")
        or any(run.job.task_id == task_id for run in current.runs())
    )


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
