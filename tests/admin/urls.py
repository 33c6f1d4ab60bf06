"""The default admin site, and a second one of a project's own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from django_latch.admin import LockAdmin
from django_latch.models import ActiveLock


class OtherSite(admin.AdminSite):
    site_header = "Operations"


other = OtherSite(name="operations")
other.register(ActiveLock, LockAdmin)

urlpatterns = [path("admin/", admin.site.urls), path("ops/", other.urls)]
