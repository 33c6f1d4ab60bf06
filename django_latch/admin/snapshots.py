"""The list of snapshots in the admin, beside that of the locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from django_latch.admin.reading import PROBLEMS, explain
from django_latch.core.owner import clean
from django_latch.snapshots import listing
from django_latch.text import duration

if TYPE_CHECKING:
    from django_latch.snapshots.listing import SnapshotInfo

    Base = admin.ModelAdmin[Any]
else:
    Base = object

#: Most snapshots on the page.
MOST: Final = 500

STATES: Final = {
    "fresh": gettext_lazy("fresh"),
    "stale": gettext_lazy("stale"),
    "none": gettext_lazy("no value"),
    "corrupt": gettext_lazy("unreadable"),
}


class SnapshotsMixin(Base):
    """A page that lists the snapshots, for whoever may see locks. Looking changes nothing."""

    def get_urls(self) -> list[URLPattern]:
        """The page, before those of single locks."""
        view = self.admin_site.admin_view(require_safe(self.snapshots_view))
        name = f"{self.opts.app_label}_{self.opts.model_name}_snapshots"
        return [path("snapshots/", view, name=name), *super().get_urls()]

    def snapshots_view(self, request: HttpRequest) -> HttpResponse:
        """The list.

        Raises:
            PermissionDenied: the user may not see locks.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        problem, found = "", []
        try:
            found = listing.listed(MOST + 1)
        except PROBLEMS as error:
            problem = explain(error)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Snapshots"),
            "opts": self.opts,
            "media": self.media,
            "rows": [_row(one) for one in found[:MOST]],
            "more": len(found) > MOST,
            "most": MOST,
            "problem": problem,
        }
        template = "admin/django_latch/activelock/snapshots.html"
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, context)


def _row(one: SnapshotInfo) -> dict[str, Any]:
    return {
        "name": clean(one.name),
        "state": STATES[one.state],
        "age": "" if one.age is None else duration(one.age),
        "took": "" if one.took is None else f"{one.took:.3f} s",
        "refreshing": one.refreshing,
        "failures": one.failures,
        "error": clean(one.error, 500),
    }
