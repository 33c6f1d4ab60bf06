"""The test suite's settings for server processes: a database in a file, and the HTTP API."""

from __future__ import annotations

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DJANGO_LATCH

#: Where a server process finds its database, and changes to DJANGO_LATCH as JSON.
DATABASE = "LATCH_TEST_SQLITE"
CHANGES = "LATCH_TEST_CHANGES"

ROOT_URLCONF = "tests.api.urls"
ALLOWED_HOSTS = ["*"]
ASGI_APPLICATION = "tests.api.asgi.application"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get(DATABASE, ":memory:"),
    }
}
_changes = json.loads(os.environ.get(CHANGES, "{}"))
DJANGO_LATCH = {
    **DJANGO_LATCH,
    **_changes,
    "HTTP": {
        "AUTHENTICATORS": ("django_latch.api.auth.bearer", "django_latch.api.auth.login"),
        **_changes.get("HTTP", {}),
    },
}
if "CACHE_URL" in _changes:
    CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
        "locks": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": DJANGO_LATCH.pop("CACHE_URL"),
            "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 1, "SOCKET_TIMEOUT": 1},
        },
    }
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
