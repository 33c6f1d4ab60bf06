"""What the server of the HTTP scenario runs: the API, and a trivial view beside it."""

from __future__ import annotations

import os

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import include, path

from benchmarks.http import DATABASE, STORE

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_latch"],
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ[DATABASE]},
    },
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": os.environ[STORE],
        }
    },
    DJANGO_LATCH={"HTTP": {"AUTHENTICATORS": ["django_latch.api.auth.bearer"]}},
)
django.setup(set_prefix=False)


async def trivial(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})


urlpatterns = [path("", include("django_latch.api.urls")), path("trivial", trivial)]
application = get_asgi_application()


def prepare() -> None:
    """Make the database and print an API token."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("latch_token", "create", "bench", scope=["*"], verbosity=0)


if __name__ == "__main__":
    prepare()
