"""Other servers and settings for the locks of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.test import override_settings

from tests import servers


@contextmanager
def locks_at(url: str, **more: Any) -> Iterator[None]:
    """The locks live at `url`; OPTIONS and the like by keyword."""
    with override_settings(CACHES={"locks": servers.alias(url, **more)}):
        yield


def timeouts(seconds: float) -> dict[str, Any]:
    """OPTIONS with these time-outs."""
    return {"OPTIONS": {"SOCKET_TIMEOUT": seconds, "SOCKET_CONNECT_TIMEOUT": seconds}}


@contextmanager
def latch_settings(**changes: Any) -> Iterator[None]:
    """DJANGO_LATCH as the suite has it, with changes."""
    with override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks", "EVENTS": "all", **changes}):
        yield
