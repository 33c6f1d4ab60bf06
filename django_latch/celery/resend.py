"""Send the message of a job once more, for later."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from celery.exceptions import Reject

from django_latch import signals
from django_latch.celery import queued, told
from django_latch.celery.header import HEADER, Carried, strip
from django_latch.exceptions import LatchError, LatchUnavailable

if TYPE_CHECKING:
    from django_latch.celery.job import Job

logger = logging.getLogger("django_latch")


def send_again(
    job: Job,
    refusal: LatchError,
    reason: str,
    countdown: float,
    waits: int,
    *,
    carries: bool = False,
) -> None:
    """Publish the job's message once more, with the same id and number of retries.

    Parameters:
        job: the job.
        refusal: why it cannot run now.
        reason: the same in a word, for the signal.
        countdown: seconds until it comes again.
        waits: how often it was sent again, with this time.
        carries: it carries the lock's next run.

    Raises:
        Reject: it could not be published, and the broker delivers the present message again.
        LatchError: `refusal`, where the broker does not.
    """
    request = job.request
    before = job.carried or Carried(task_id=job.task_id)
    outage = isinstance(refusal, LatchUnavailable)
    carried = replace(
        before,
        key=job.key,
        waits=waits,
        # After any answer the lock that came with the message has been taken over or has ended.
        token=before.token if outage else None,
        carries=carries or before.carries,
    )
    message = job.task.signature_from_request(
        request,
        countdown=countdown,
        retries=request.retries,
        headers={**strip(request.headers), HEADER: carried.to_header()},
        **told.shown(request),
    )
    try:
        message.apply_async()
    except Exception as error:
        if job.task.acks_late:  # the broker still has this message
            raise Reject(error, requeue=True) from error
        drop_queued(job)
        raise refusal from error
    facts = told.facts(job, refusal, reason)
    logger.info(
        "%s: sent again for in %.1f s, %s: %s",
        job.name,
        countdown,
        job.key,
        refusal,
        extra={"latch": {**facts, "countdown": countdown}},
    )
    signals.send(signals.task_deferred, **facts, countdown=countdown)


def drop_queued(job: Job) -> None:
    """Free what was sent with the message, which does not come again.

    Parameters:
        job: the job.
    """
    if job.from_message and job.carried is not None:
        queued.owe(job.key, job.carried.token)
