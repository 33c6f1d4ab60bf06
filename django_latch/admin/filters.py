"""The filters of the list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.utils.translation import gettext_lazy as _

from django_latch.admin.changelist import source_of
from django_latch.core.owner import clean
from django_latch.live.fields import field_of
from django_latch.text import duration

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest

    from django_latch.live import LiveQuerySet

#: Most choices that one filter offers; the search finds the others.
CHOICES = 50


class LiveFilter(admin.SimpleListFilter):
    """A filter by a field of the rows; `field` names it."""

    field: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """None yet: `choices` knows the rows."""
        return []

    def has_output(self) -> bool:
        """Always, until the rows are known."""
        return True

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """The rows with the chosen value."""
        value = self.value()
        return queryset if value is None else self.narrow(queryset, value)

    def narrow(self, queryset: LiveQuerySet, value: str) -> LiveQuerySet:
        """The rows with this value."""
        return queryset.filter(**{self.field: value})


class SeenFilter(LiveFilter):
    """Offers the values of the rows that were read: those of the page, or of all that a filter,
    a search or an order had to go through. A read of its own would cost every page a scan."""

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """All, and each value once."""
        values_of = field_of(self.field).values
        values = {
            value for lock in source_of(changelist).seen for value in values_of(lock) if value
        }
        if chosen := self.value():
            values.add(chosen)
        self.lookup_choices = [(value, clean(value)) for value in sorted(values)[:CHOICES]]
        return super().choices(changelist)


class TaskFilter(SeenFilter):
    """By task."""

    title = _("task")
    parameter_name = field = "task"


class WorkerFilter(SeenFilter):
    """By worker."""

    title = _("worker")
    parameter_name = field = "worker"


class HostFilter(SeenFilter):
    """By host."""

    title = _("host")
    parameter_name = field = "host"


class StateFilter(SeenFilter):
    """By state."""

    title = _("state")
    parameter_name = field = "state"


class HeldForFilter(LiveFilter):
    """By how long at least a lock has been held."""

    title = _("held for at least")
    parameter_name = "held_for"
    seconds = (60, 600, 3600, 86400)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Some round times."""
        return [(str(seconds), duration(seconds)) for seconds in self.seconds]

    def narrow(self, queryset: LiveQuerySet, value: str) -> LiveQuerySet:
        """The rows held for `value` seconds at least."""
        try:
            return queryset.filter(held_for__gte=value)
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error


class WaitersFilter(LiveFilter):
    """By whether somebody waits."""

    title = _("waiters")
    parameter_name = "waiters"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Some or none."""
        return [("some", _("Some")), ("none", _("None"))]

    def narrow(self, queryset: LiveQuerySet, value: str) -> LiveQuerySet:
        """The rows with waiters, or without."""
        return queryset.filter(waiters__gt=0) if value == "some" else queryset.filter(waiters=0)
