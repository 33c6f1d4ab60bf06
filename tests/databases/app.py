"""A worker whose tasks read the tests' database."""

from __future__ import annotations

from celery import shared_task
from django.db import transaction

from django_latch import latch
from django_latch.celery import single_flight
from tests.celery.app import app

__all__ = ["app"]


@single_flight(key="read:{number}", at="enqueue")
@shared_task
def read(number: int) -> str:
    """The account of a token, as the worker sees it."""
    from django_latch.models import ApiToken

    found = ApiToken.objects.filter(pk=number).first()
    return found.account if found else "not there"


@single_flight(key="add:{number}", on_conflict="wait", timeout=20)
@shared_task
def add(number: int) -> None:
    """Append to a token's scopes by reading and writing, under a lock that lasts to the commit."""
    from django_latch.models import ApiToken

    with transaction.atomic(), latch(f"row:{number}", release_on="commit", timeout=20):
        token = ApiToken.objects.get(pk=number)
        token.scopes += "+"
        token.save()
