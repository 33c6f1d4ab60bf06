"""The admin of the locks, and of the tokens of the HTTP API.

Registered on the default site. On a site of your own::

    from django_latch.admin import LockAdmin
    from django_latch.models import ActiveLock

    site.register(ActiveLock, LockAdmin)
"""

from __future__ import annotations

from django.contrib import admin

from django_latch.admin.locks import LockAdmin
from django_latch.admin.tokens import ApiTokenAdmin
from django_latch.models import ActiveLock, ApiToken

__all__ = ["ApiTokenAdmin", "LockAdmin"]

admin.site.register(ActiveLock, LockAdmin)
admin.site.register(ApiToken, ApiTokenAdmin)
