"""The admin of `ActiveLock`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_latch.admin import filters
from django_latch.admin.changelist import MARK, LockChangeList, LockPaginator, source_of
from django_latch.admin.columns import LockColumns, lines
from django_latch.admin.reading import Reading
from django_latch.admin.release import ReleaseMixin
from django_latch.admin.snapshots import SnapshotsMixin
from django_latch.inventory import LockInfo
from django_latch.live import MAXIMUM, LiveQuerySet
from django_latch.models import ActiveLock

if TYPE_CHECKING:
    from django.db.models.options import Options

    Base = admin.ModelAdmin[ActiveLock]
else:
    Base = admin.ModelAdmin


class LockAdmin(LockColumns, ReleaseMixin, SnapshotsMixin, Base):
    """The locks that are held now: to be seen, searched, and freed with a reason.

    `view_activelock` shows them, `release_activelock` also frees them. Nothing is ever added,
    changed or deleted, and looking at a page writes nothing to Redis.
    """

    list_display = (
        "name",
        "task",
        "held_for",
        "expires_in",
        "waiters",
        "worker",
        "process",
        "fence",
    )
    list_filter = (
        filters.TaskFilter,
        filters.WorkerFilter,
        filters.HostFilter,
        filters.StateFilter,
        filters.HeldForFilter,
        filters.WaitersFilter,
    )
    search_fields = ("name",)  # shows the box; get_search_results looks in more
    search_help_text = gettext_lazy("Words of the key, task, task id, label, worker or host")
    actions = ("release_selected",)
    fields = ("name", "limit", "waiters")
    list_per_page = 100
    list_max_show_all = 500
    paginator = LockPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # they would count in a database

    class Media:
        css = {"all": ("django_latch/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: jobs acquire locks."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ActiveLock | None = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ActiveLock | None = None) -> bool:
        """Never: a lock is released, with its lease compared."""
        return False

    @admin.display(description=gettext_lazy("permits"))
    def limit(self, lock: ActiveLock) -> int | None:
        """How many may hold the lock at once."""
        return lock.info.limit if lock.info else None

    def get_queryset(self, request: HttpRequest) -> Any:
        """The live rows; a problem of the store leaves them empty and is said on the page."""
        return LiveQuerySet(self.model, Reading())

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """What ends first comes first: the order of the index, so a page needs no scan."""
        return ("expires_in",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LockChangeList]:
        """Django's, with its rows read early."""
        return LockChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        """The rows in which every word occurs; quotes keep words together."""
        words = [
            unescape_string_literal(bit) if bit[0] in "\"'" and bit[0] == bit[-1] else bit
            for bit in smart_split(search_term)
        ]
        words = [word for word in words if word]
        return (queryset.search(words) if words else queryset), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> ActiveLock | None:
        """The lock of this name; while the store has a problem, an empty row and a message.

        The history of a free lock is shown too: that is where a release left its reason.
        """
        object_id = object_id.removesuffix(MARK)
        rows: LiveQuerySet = self.get_queryset(request)
        found: ActiveLock | None = rows.filter(pk=object_id).first()
        if rows.source.problem:
            self.message_user(request, rows.source.problem, messages.ERROR)
            return ActiveLock(name=object_id)
        match = request.resolver_match
        if found is None and match and match.url_name == self._url_name("history"):
            free = LockInfo(name=object_id, holders=(), waiters=0)
            return ActiveLock.from_info(free) if rows.admits(free) else None
        return found

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Options[ActiveLock], object_id: str
    ) -> HttpResponse:
        """Back to the list: that a lock is free is no error."""
        text = _("No job lock “%(name)s” is held or waited for now.")
        self.message_user(request, text % {"name": unquote(object_id)}, messages.WARNING)
        return HttpResponseRedirect(self._url(request, "changelist"))

    def get_paginator(
        self, request: HttpRequest, queryset: Any, per_page: int, *args: Any, **kwargs: Any
    ) -> Paginator[Any]:
        """Of a history only what is of exactly this lock: to MariaDB, "a" is "A" and "a "."""
        match = request.resolver_match
        if match and match.url_name == self._url_name("history"):
            name = unquote(match.kwargs["object_id"]).removesuffix(MARK)
            entries = queryset.values_list("pk", "object_id")
            queryset = queryset.filter(pk__in=[pk for pk, of in entries if of == name])
        return super().get_paginator(request, queryset, per_page, *args, **kwargs)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, with a message if it is empty or cut for a reason one cannot see."""
        response = super().changelist_view(request, extra_context)
        changelist = (getattr(response, "context_data", None) or {}).get("cl")
        if isinstance(changelist, LockChangeList):
            source = source_of(changelist)
            if source.problem:
                text = _("%(problem)s The list is empty, but locks may be held.")
                self.message_user(request, text % {"problem": source.problem}, messages.ERROR)
            if source.cut:
                text = _("There are more locks than the %(count)d that were looked through.")
                self.message_user(request, text % {"count": MAXIMUM}, messages.WARNING)
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Django's page, with the holders and the way to release them."""
        lock: ActiveLock | None = kwargs.get("obj")
        holders = lock.holders if lock else ()
        if lock and holders and self.has_release_permission(request, lock):
            url = self._url(request, "release")
            link = url + ("&" if "?" in url else "?") + urlencode({"name": lock.name})
            context["release_url"] = link
        context["holders"] = [{"fence": h.fence, "lines": lines(h)} for h in holders]
        return super().render_change_form(request, context, *args, **kwargs)
