"""The API, mounted, and a trivial view to compare with."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, JsonResponse
from django.urls import include, path


async def trivial(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})


urlpatterns = [
    path("", include("django_latch.api.urls")),
    path("admin/", admin.site.urls),
    path("trivial", trivial),
]
