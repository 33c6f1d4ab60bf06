"""Settings of the example project: usable as they are, changed by environment variables.

| variable                | default                                       |
| ----------------------- | --------------------------------------------- |
| `REDIS_URL`             | `redis://127.0.0.1:6390/0` (embedded Valkey)   |
| `DATABASE_URL`          | a SQLite file in `EXAMPLE_DATA`                |
| `CELERY_BROKER_URL`     | the database after the one in `REDIS_URL`      |
| `EXAMPLE_DATA`          | `example_project/data`                         |
| `SECRET_KEY`, `DEBUG`   | a public key and "1": for your own machine only |
"""

from __future__ import annotations

import os
from pathlib import Path

import django
from celery.schedules import crontab

from example_project import environment

BASE_DIR = Path(__file__).resolve().parent
DATA_DIR = Path(os.environ.get("EXAMPLE_DATA") or BASE_DIR / "data")

SECRET_KEY = os.environ.get("SECRET_KEY") or "public-and-therefore-only-for-your-own-machine"
DEBUG = os.environ.get("DEBUG", "1") == "1"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "127.0.0.1,localhost").split(",")

INSTALLED_APPS = [
    "example_project.invoicing",
    "django_latch",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
LOGIN_URL = "admin:login"

DATABASES = {
    "default": environment.database(
        os.environ.get("DATABASE_URL") or environment.sqlite_url(DATA_DIR / "invoicing.sqlite3")
    ),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = "static/"
MEDIA_ROOT = DATA_DIR / "media"
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"allow_overwrite": True},  # an invoice has one PDF, however often it is made
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Mails are printed. The name of the setting changes with Django 6.1.
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": "django.core.mail.backends.console.EmailBackend"}}
else:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"

# --- Redis ------------------------------------------------------------------------------------

REDIS_URL = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6390/0"
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # An alias and a database of their own: cache.clear() of a django-redis cache empties its whole
    # database, and locks must survive that.
    "locks": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": environment.redis_url(REDIS_URL, 0),
        "KEY_PREFIX": "invoicing",
    },
}
BANK_MAILBOX_URL = environment.redis_url(REDIS_URL, 1)

# --- Locks ------------------------------------------------------------------------------------

DJANGO_LATCH = {
    "CACHE_ALIAS": "locks",
    # Short, so that one can watch it: a lock is renewed every 2 s, and a dead worker's job may
    # start again after 6 s at the latest. 30 s, the default, suits most projects better.
    "TTL": 6,
    # Each beginning and end of a lease, not only problems: for the page and for the demo's proof.
    "EVENTS": "all",
}

# --- Celery -----------------------------------------------------------------------------------

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or environment.redis_url(REDIS_URL, 1)
# What a job has done stands in the database: nobody reads Celery's results.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# One job per process at a time: a long import never holds up jobs that were fetched behind it.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "nightly statements": {
        "task": "invoicing.nightly_statements",
        "schedule": crontab(hour="2", minute="30"),
    },
}
