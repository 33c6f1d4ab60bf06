"""Settings of a beat whose schedule is in the database: django-celery-beat."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

#: Environment variable: the file of the database.
DATABASE = "LATCH_EXITS_DATABASE"

INSTALLED_APPS = [*INSTALLED_APPS, "django_celery_beat"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get(DATABASE, ":memory:"),
    }
}
