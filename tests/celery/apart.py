"""The tasks, with their locks on a server apart from the broker: it can be stopped alone."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from django.conf import settings

#: Environment variable: the URL of the locks' server.
LOCKS = "LATCH_TEST_LOCKS"

settings.CACHES["locks"]["LOCATION"] = os.environ[LOCKS]

from tests.celery.flights import app  # noqa: E402

__all__ = ["app"]
