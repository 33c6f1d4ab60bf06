"""Addresses of the example project: the admin, and the pages of the invoicing app."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("example_project.invoicing.urls")),
]
