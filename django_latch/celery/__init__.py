"""Celery tasks that never run twice at once: ``@single_flight``."""

from __future__ import annotations

try:
    from django_latch.celery import dropped, parent, publishing, revive  # noqa: F401 - they connect signal handlers
    from django_latch.celery.options import SingleFlight, single_flight
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "celery":
        raise
    raise ImportError(
        "django_latch.celery needs Celery: pip install 'django-latch-locks[celery]'"
    ) from error

__all__ = ["SingleFlight", "single_flight"]
