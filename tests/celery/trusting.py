"""The tasks, in a worker that reads pickle too."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

from celery import Task, shared_task
from pydantic import BaseModel

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
    return lock_name()


def lock_name() -> str:
    """Of the lock that this run has."""
    lease = current_lease()
    assert lease is not None
    return lease.name


class Line(BaseModel):
    """Part of an order."""

    sku: str
    price: Decimal
    tags: set[int] = set()


class Order(BaseModel):
    """What a task takes with ``pydantic=True``."""

    number: UUID
    at: dt.datetime
    lines: list[Line] = []
    note: str | None = None


@single_flight()
@shared_task(bind=True, pydantic=True)
def ordered(self: Task, order: Order, other: Order | None = None) -> str:
    """Its own lock's name."""
    assert isinstance(order, Order)
    return lock_name()
