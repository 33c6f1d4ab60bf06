"""System checks; none of them talks to a server."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from django_latch.checks import check_settings

BACKEND = "django_redis.cache.RedisCache"
LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
NOWHERE = "redis://127.0.0.1:1/0"


def ids() -> list[str | None]:
    return [message.id for message in check_settings(None)]


def cache(backend: str = BACKEND, location: object = NOWHERE) -> dict[str, object]:
    return {"BACKEND": backend, "LOCATION": location}


@pytest.mark.parametrize(
    ("latch", "caches", "expected"),
    [
        ({"CACHE_ALIAS": "locks"}, {"locks": cache()}, []),
        ({"CACHE_ALIAS": "locks", "TLL": 1}, {"locks": cache()}, ["django_latch.E001"]),
        ({"CACHE_ALIAS": "locks", "TTL": -1}, {"locks": cache()}, ["django_latch.E001"]),
        ([], {"locks": cache()}, ["django_latch.E001"]),
        ({"CACHE_ALIAS": "nowhere"}, {"locks": cache()}, ["django_latch.E002"]),
        ({"CACHE_ALIAS": "locks"}, {"locks": cache(LOCMEM)}, ["django_latch.E003"]),
        ({"CACHE_ALIAS": "locks"}, {"locks": cache("no.such.Backend")}, ["django_latch.E003"]),
        (
            {"CACHE_ALIAS": "locks"},
            {"locks": cache(location=[NOWHERE, NOWHERE])},
            ["django_latch.W002"],
        ),
        ({}, {"default": cache()}, ["django_latch.W001"]),
    ],
)
def test_check(latch: object, caches: dict[str, object], expected: list[str]) -> None:
    caches = {"default": cache(LOCMEM), **caches}
    with override_settings(DJANGO_LATCH=latch, CACHES=caches):
        assert ids() == expected


def test_every_message_has_a_remedy() -> None:
    for latch in ({"TLL": 1}, {"CACHE_ALIAS": "nowhere"}, {"CACHE_ALIAS": "default"}):
        with override_settings(DJANGO_LATCH=latch):
            found = [m for m in run_checks() if (m.id or "").startswith("django_latch.")]
            assert found
            assert all(m.hint for m in found)
