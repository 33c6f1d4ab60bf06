"""The rows of `ActiveLock`, read live from Redis."""

from __future__ import annotations

from django_latch.live.queryset import MAXIMUM, LiveQuerySet, Source

__all__ = ["MAXIMUM", "LiveQuerySet", "Source"]
