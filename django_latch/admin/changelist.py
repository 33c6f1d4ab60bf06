"""Django's change list, for rows that come and go while one looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import EmptyPage, Paginator

from django_latch.admin.reading import Reading

if TYPE_CHECKING:
    from django.http import HttpRequest

    Base = Paginator[Any]
else:
    Base = Paginator


def source_of(changelist: ChangeList) -> Reading:
    """Where the rows of a list of locks come from."""
    rows: Any = changelist.root_queryset
    source: Reading = rows.source
    return source


class LockPaginator(Base):
    """A page that is no longer there shows the last one: the list may have shrunk meanwhile."""

    def validate_number(self, number: Any) -> int:
        """The number of an existing page."""
        try:
            return super().validate_number(number)
        except EmptyPage:
            return self.num_pages if int(number) > 0 else 1


class LockChangeList(ChangeList):
    """Reads its rows at once, so the view knows what went wrong and the filters what there is."""

    def get_results(self, request: HttpRequest) -> None:
        """Find the rows of the page, then drop what offers no choice among them."""
        super().get_results(request)
        len(self.result_list)
        self.show_admin_actions = bool(self.result_count)
        if not source_of(self).seen and not self.has_active_filters:
            self.filter_specs = []
        self.filter_specs = [
            spec for spec in self.filter_specs if len(list(spec.choices(self))) > 1
        ]
        self.has_filters = bool(self.filter_specs)
