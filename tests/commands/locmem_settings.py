"""A project whose locks have no Redis."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

DJANGO_LATCH = {"CACHE_ALIAS": "default"}
