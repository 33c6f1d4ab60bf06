"""What happens when a message is published: Celery's ``before_task_publish``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from celery import current_app, states
from celery.signals import before_task_publish, task_postrun

from django_latch.celery import current
from django_latch.celery.guarded import guarded_of
from django_latch.celery.header import HEADER, RUN, Carried, read
from django_latch.celery.keying import header_for
from django_latch.celery.times import queue_seconds


@before_task_publish.connect(dispatch_uid="django_latch.celery", weak=False)
def leaving(
    sender: str, body: Any, headers: dict[str, Any], properties: dict[str, Any], **_: Any
) -> None:
    """Give messages of tasks sent by name their key; release before an own retry is published.

    `retry()` publishes before any ``finally`` of the task: a free worker would meet the lock of
    the run that is just ending. So would a replacement, which has the run's task id as well.

    Parameters:
        sender: the task's name.
        body, headers, properties: of the message; changed in place.
    """
    headers.pop(RUN, None)  # the secret of one run, inherited by nobody
    if "id" in headers:  # protocol 2
        task_id, args, kwargs = headers["id"], body[0], body[1]
    else:
        task_id, args, kwargs = body["id"], body["args"], body["kwargs"]
    try:
        if properties.pop("single_flight", True) is False:
            headers[HEADER] = Carried(task_id=task_id, off=True).to_header()
        else:
            _add_key(sender, task_id, headers, args, kwargs)
    finally:
        for run in current.runs():
            if run.job.task_id == task_id:
                _hand_on(run, headers)


def _hand_on(run: current.Run, headers: dict[str, Any]) -> None:
    """Give the run's lock back before its retry or replacement is out, or leave it to the retry."""
    job, holding = run.job, run.holding
    holding.finished = True
    ours = read(headers, job.task_id)
    retries = "id" in headers and headers.get("retries", 0) > job.request.retries
    if job.flight.hold_on_retry and retries and ours and ours.key == job.key:
        seconds = queue_seconds(job.task, headers, job.flight.queue_seconds)
        token = holding.hand_over(seconds)
        headers[HEADER] = replace(ours, token=token).to_header()
    else:
        holding.release()


@task_postrun.connect(dispatch_uid="django_latch.celery", weak=False)
def over(state: str | None = None, **_: Any) -> None:
    """The task has ended in every respect: nothing may be left of its lock.

    Parameters:
        state: how it ended.
    """
    current.unpark(published=state != states.REJECTED)


def _add_key(name: str, task_id: str, headers: dict[str, Any], args: Any, kwargs: Any) -> None:
    # Not `current_app.tasks`: that would finalise the app of somebody who only sends by name.
    task = current_app._tasks.get(name)
    guarded = guarded_of(task) if task is not None else None
    if guarded is None or (guarded.placed_above and read(headers, task_id)):
        return  # not ours, or `apply_async` has done it
    carried = header_for(guarded, task, task_id, headers, args, kwargs)
    headers.pop(HEADER, None)
    if carried is not None:
        headers[HEADER] = carried.to_header()
