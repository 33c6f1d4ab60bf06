"""The tasks, in a worker that reads pickle too."""

from __future__ import annotations

from celery import Task, shared_task

from django_latch import current_lease
from django_latch.celery import single_flight
from tests.celery.flights import app

app.conf.accept_content = ["json", "pickle"]
app.conf.result_extended = False  # results are JSON, and would hold the arguments

__all__ = ["app"]


@single_flight()
@shared_task(bind=True)
def keyed(self: Task, *values: object, **named: object) -> str:
    """Its own lock's name."""
    lease = current_lease()
    assert lease is not None
    return lease.name
