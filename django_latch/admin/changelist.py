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


#: What browsers take for a folder in an address, and what makes it something else: no name of a
#: lock ends with it.
FOLDERS, MARK = (".", ".."), "\n"

#: Pages from here on are hardly there; they are counted first.
FAR = 1000


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
        self._read_ahead()
        super().get_results(request)
        len(self.result_list)
        if not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count  # nothing more that could be shown
        self.show_admin_actions = bool(self.result_count)
        if not source_of(self).seen and not self.has_active_filters:
            self.filter_specs = []
        self.filter_specs = [
            spec for spec in self.filter_specs if len(list(spec.choices(self))) > 1
        ]
        self.has_filters = bool(self.filter_specs)

    def url_for_result(self, result: Any) -> str:
        """The page of a row, also where its key means something in an address."""
        if result.name in FOLDERS:
            result = self.model(name=result.name + MARK)
        return super().url_for_result(result)

    def _read_ahead(self) -> None:
        """Read what the page most likely shows together with the count."""
        rows: Any = self.queryset
        if rows.is_page and not self.show_all and 0 < self.page_num < FAR:
            offset = (self.page_num - 1) * self.list_per_page
            source_of(self).ahead(offset, self.list_per_page, reverse=rows.reverse)
