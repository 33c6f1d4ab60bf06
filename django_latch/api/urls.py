"""The routes. Include them where you like: ``path("", include("django_latch.api.urls"))``."""

from __future__ import annotations

from django.urls import path, re_path

from django_latch.api import holding, releasing, views
from django_latch.api.endpoint import endpoint

app_name = "django_latch"

urlpatterns = [
    path("v1/openapi.json", endpoint(GET=views.document), name="openapi"),
    path("v1/latch", endpoint(GET=views.page), name="locks"),
    path(
        "v1/latch/<str:key>",
        endpoint(GET=views.inspect, POST=holding.acquire, DELETE=releasing.release_by_header),
        name="lock",
    ),
    path("v1/latch/<str:key>/release", endpoint(POST=releasing.release), name="release"),
    path("v1/latch/<str:key>/queue", endpoint(GET=views.queue), name="queue"),
    # No key holds a slash, so whatever else comes is a bad key, not a missing page.
    re_path(r"^v1/latch/(?P<key>(?s:.*))$", endpoint(), name="invalid_key"),
]
