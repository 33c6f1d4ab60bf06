"""Our part of ``apply_async``: a call on its way to the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from celery.utils import uuid

from django_latch.celery import canvas, current, enqueue
from django_latch.celery.header import HEADER, Carried, read
from django_latch.celery.keying import header_for

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded

logger = logging.getLogger("django_latch")


@dataclass(kw_only=True, eq=False)  # not frozen: that takes time at each call
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
        Exception: the key function raises it.
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
        locks = guarded.flight.at != "run" and not _passes(task_id, options)
        if locks:
            _check_arguments(task, args, kwargs)
        if guarded.flight.at == "enqueue" and canvas.is_member(options):
            _warn_of_member(task.name)
        try:
            carried = header_for(guarded, task, task_id, options.get("headers"), args, kwargs)
        except Exception:
            if not (canvas.is_member(options) or canvas.is_link(options)):
                raise
            carried = None  # its run will fail by the same, where a canvas expects failures
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

    Retries, and messages sent again, belong to a job that had its turn here.
    """
    return bool(
        options.get("retries")
        or read(options.get("headers"), task_id)
        or canvas.is_member(options)
        or any(run.job.task_id == task_id for run in current.runs())
    )


@cache
def _warn_of_member(name: str) -> None:
    """Say once for each task that its lock does less than its options promise."""
    logger.warning(
        "%s: at='enqueue' locks no member of a chain, group or chord; at='both' locks its run", name
    )


def _check_arguments(task: Any, args: Any, kwargs: Any) -> None:
    """Celery's own check, made early: wrong arguments must neither lock nor leave anything."""
    check = getattr(task, "__header__", None)  # tasks that are classes have none
    if task.typing and check is not None:
        check(*(args or ()), **(kwargs or {}))
