"""System checks. None of them talks to a server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import mail
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.urls import URLResolver, get_resolver
from django.utils.module_loading import import_string

from django_latch.conf import conf

BACKEND = "django_redis.cache.RedisCache"


@register()
def check_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001: DJANGO_LATCH itself."""
    try:
        conf.load()
    except ImproperlyConfigured as error:
        return [
            Error(str(error), hint="See the settings page of django_latch.", id="django_latch.E001")
        ]
    return _check_memory() if conf.backend == "memory" else _check_alias(conf.cache_alias)


@register("urls")
def check_api(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W003, E004: the HTTP API is mounted, and who may use it?"""
    try:
        paths = conf.http.authenticators
    except ImproperlyConfigured:  # E001 says so
        return []
    found: list[CheckMessage] = []
    for path in paths:
        try:
            import_string(path)
        except ImportError as error:
            found.append(
                Error(
                    f"DJANGO_LATCH['HTTP']['AUTHENTICATORS'] names {path!r}: {error}",
                    hint="Name async functions, such as 'django_latch.api.auth.bearer'.",
                    id="django_latch.E004",
                )
            )
    if not paths and getattr(settings, "ROOT_URLCONF", None) and _is_mounted(get_resolver()):
        found.append(
            Warning(
                "The HTTP API is mounted, and nobody can use it: no authenticator is set.",
                hint="Name one in DJANGO_LATCH['HTTP']['AUTHENTICATORS'], such as "
                "'django_latch.api.auth.bearer'.",
                id="django_latch.W003",
            )
        )
    return found


def _is_mounted(resolver: URLResolver) -> bool:
    return any(
        getattr(part.urlconf_name, "__name__", "") == "django_latch.api.urls" or _is_mounted(part)
        for part in resolver.url_patterns
        if isinstance(part, URLResolver)
    )


@register()
def check_celery(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W010 to W016: tasks with a single flight. Only where the project has imported Celery."""
    if "celery" not in sys.modules:
        return []
    from django_latch.celery.checks import check_tasks

    return check_tasks()


def _check_memory() -> list[CheckMessage]:
    """W004: locks in memory, outside a test run, where Django's own mailbox stands for one."""
    if hasattr(mail, "outbox"):
        return []
    return [
        Warning(
            "The locks live in the memory of each process: two processes never see each other's.",
            hint="DJANGO_LATCH['BACKEND'] = 'memory' is for test suites only; remove it.",
            id="django_latch.W004",
        )
    ]


def _check_alias(alias: str) -> list[CheckMessage]:
    """E002, E003: where the locks are kept. W001, W002: what would remove them or wait in vain."""
    caches = settings.CACHES
    if alias not in caches:
        return [
            Error(
                f"DJANGO_LATCH['CACHE_ALIAS'] is {alias!r}, and CACHES has no such alias.",
                hint="Add a django-redis alias of that name, or name another.",
                id="django_latch.E002",
            )
        ]
    found: list[CheckMessage] = []
    if not _is_django_redis(caches[alias].get("BACKEND", "")):
        found.append(
            Error(
                f"The cache alias {alias!r} is not a django-redis cache.",
                hint=f"Set its BACKEND to {BACKEND!r}, or name another alias in "
                "DJANGO_LATCH['CACHE_ALIAS'].",
                id="django_latch.E003",
            )
        )
    location = caches[alias].get("LOCATION")
    if isinstance(location, list | tuple) and len(location) > 1:
        found.append(
            Warning(
                f"The cache alias {alias!r} lists several servers; locks live on the first.",
                hint="Replicas answer late. Give the locks an alias with the primary only.",
                id="django_latch.W002",
            )
        )
    if alias == "default":
        found.append(
            Warning(
                "The locks share the cache alias 'default': cache.clear() removes every lock.",
                hint="Add an alias with a database of its own and name it in "
                "DJANGO_LATCH['CACHE_ALIAS']; or silence this if nothing clears the cache.",
                id="django_latch.W001",
            )
        )
    return found


def _is_django_redis(path: str) -> bool:
    try:
        backend = import_string(path)
        return issubclass(backend, import_string(BACKEND))
    except (ImportError, TypeError):
        return False
