"""The admin of the locks.

Registered on the default site. On a site of your own::

    from django_latch.admin import LockAdmin
    from django_latch.models import ActiveLock

    site.register(ActiveLock, LockAdmin)
"""

from __future__ import annotations

from django.contrib import admin

from django_latch.admin.locks import LockAdmin
from django_latch.models import ActiveLock

__all__ = ["LockAdmin"]

admin.site.register(ActiveLock, LockAdmin)
