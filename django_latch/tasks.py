"""Celery tasks of django_latch itself; Celery's autodiscovery imports this in every worker.

There are none yet. What is added here must import on every supported Django, and without Celery.
"""

from __future__ import annotations
