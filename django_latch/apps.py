from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DjangoLatchConfig(AppConfig):
    name = "django_latch"
    verbose_name = _("Job locks")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_latch import checks  # noqa: F401  registers them
