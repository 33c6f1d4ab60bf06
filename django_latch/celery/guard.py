"""Run a task's function under its lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery.exceptions import Ignore, Reject, Retry

from django_latch.celery import abort, conflicts, current, rerun
from django_latch.celery.header import read
from django_latch.celery.holding import Holding
from django_latch.celery.job import Job
from django_latch.current import AsCurrent
from django_latch.namespace import tenant

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded


def run(
    guarded: Guarded,
    task: Any,
    body: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `body` if nobody else runs the same job, else do what the options say.

    Parameters:
        guarded: the guard.
        task: the task; None where the function was called as a plain function.
        body: the function, ready to be called with `args` and `kwargs`.
        args, kwargs: the call's arguments, without the task itself.

    Raises:
        LatchBusy, LatchUnavailable: as the options say.
        Retry, Ignore: of Celery, where the message was sent again or needs no run.
    """
    request: Any = None if task is None else task.request
    carried = None if request is None else read(request.headers, request.id)
    if carried and carried.off:
        return body(*args, **kwargs)
    key = carried.key if carried and not request.is_eager else None
    if key is None:
        label = guarded.label if task is None else task.name
        key = guarded.keys(task).make(label, args, kwargs, tenant())
    job = Job(
        guarded=guarded,
        task=task,
        request=request,
        key=key,
        carried=carried,
        args=args,
        kwargs=kwargs,
    )
    return _under_lock(job, body)


def _under_lock(job: Job, body: Callable[..., Any]) -> Any:
    holding = Holding(job)
    mark = current.enter(job, holding)
    try:
        try:
            refusal = holding.acquire()
            if refusal is None or conflicts.runs_anyway(job, refusal):
                return _call(job, holding, body)
            return conflicts.refused(job, refusal)
        finally:
            if not holding.parked:
                holding.release()
    finally:
        # Once more: a soft time limit or a SystemExit may have come in the middle of it.
        try:
            if not holding.parked:
                holding.release()
        finally:
            current.leave(mark)


def _call(job: Job, holding: Holding, body: Callable[..., Any]) -> Any:
    try:
        args, kwargs = rerun.arguments(job, holding.payload)
        with AsCurrent(holding.lease), abort.armed(job, holding.lease):
            result = body(*args, **kwargs)
    except Exception as error:
        holding.finished = _is_end(job, error)
        if isinstance(error, Reject):  # as Celery says it where a retry cannot be sent
            holding.take_back()
        if _may_retry_itself(job, error):
            holding.parked = True
            current.park(job, holding)
        raise
    holding.finished = True
    return result


def _may_retry_itself(job: Job, error: Exception) -> bool:
    """Whether Celery's autoretry, which is outside of us, may send a retry that keeps the lock."""
    return (
        job.flight.hold_on_retry
        and job.from_message
        and hasattr(job.task, "_orig_run")
        and not isinstance(error, (Retry, Ignore, Reject))
    )


def _is_end(job: Job, error: Exception) -> bool:
    """Whether `error` ends the job for good, so that another copy of its message is superfluous.

    A rejected message may come back: from its queue, or by hand from a dead-letter queue.
    """
    if isinstance(error, Retry):
        return True  # its next message has another number of retries
    if isinstance(error, Reject):
        return False
    acks_failures = getattr(job.task, "acks_on_failure", None)
    if acks_failures is None:  # before Celery 5.7
        acks_failures = getattr(job.task, "acks_on_failure_or_timeout", True)
    return bool(acks_failures) or not getattr(job.task, "acks_late", False)
