"""A Celery project whose snapshots are computed by its workers."""

from __future__ import annotations

import os

import django
from celery import Celery
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
if not apps.ready:
    django.setup()

from django_latch import current_lease, snapshot
from tests import servers
from tests.celery.app import gate, mark
from tests.celery.harness import BROKER

app = Celery("latch_snapshots", broker=servers.url(BROKER), set_as_current=False)
app.conf.broker_connection_retry_on_startup = True
app.autodiscover_tasks(["django_latch"])


def _swept(label: str, number: int) -> int:
    lease = current_lease()
    assert lease is not None
    mark(label, "sweep", fence=lease.fence, number=number)
    gate(label)
    mark(label, "swept")
    return number


@snapshot("shop:{label}", fresh_for=60, keep_for=600, wait=10, refresh="celery")
def sweep(label: str, number: int = 1) -> int:
    return _swept(label, number)


@snapshot("ashop:{label}", fresh_for=60, keep_for=600, wait=10, refresh="celery")
async def asweep(label: str, number: int = 1) -> int:
    return _swept(label, number)


@snapshot("broken:{label}", fresh_for=60, wait=10, on_error="raise", refresh="celery")
def broken(label: str) -> None:
    mark(label, "sweep")
    raise ValueError("the shop is closed")
