"""The app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DjangoLatchConfig(AppConfig):
    """Job locks."""

    name = "django_latch"
    verbose_name = _("Job locks")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks; nothing here asks a server."""
        from django_latch import checks  # noqa: F401  registers them
