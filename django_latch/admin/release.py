"""Freeing locks from the admin.

The confirmation page names each lease by its fence and its token's fingerprint, and what is
posted back is compared in Redis: a lock that was acquired again meanwhile is not freed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, override
from django.views.decorators.http import require_http_methods

from django_latch import inventory
from django_latch.admin.leases import Holds, Lease, ReasonForm, holds_of
from django_latch.admin.reading import PROBLEMS, explain
from django_latch.exceptions import LatchCorrupt, LatchNotHeld
from django_latch.text import duration

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

    from django_latch.inventory import HolderInfo
    from django_latch.live import LiveQuerySet, Source

    Base = admin.ModelAdmin[Any]
else:
    Base = object

#: Most leases that one confirmation frees; Django takes 1000 form fields at most.
MOST = 100


def _row(lease: Lease, hold: HolderInfo | None, unknown: str) -> dict[str, Any]:
    return {
        "lease": lease,
        "who": hold.owner.describe() if hold else unknown,
        "held_for": duration(hold.held_for) if hold else "",
    }


class ReleaseMixin(Base):
    """The release action, its confirmation page and its permission."""

    def has_release_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Whether the user may free locks: who may not see them may not free them either."""
        return self.has_view_permission(request) and request.user.has_perm(
            f"{self.opts.app_label}.release_{self.opts.model_name}"
        )

    def get_urls(self) -> list[URLPattern]:
        """The release page, before the pages of single locks."""
        view = self.admin_site.admin_view(
            require_http_methods(["GET", "HEAD", "POST"])(self.release_view)
        )
        return [path("release/", view, name=self._url_name("release")), *super().get_urls()]

    def _url_name(self, view: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{view}"

    def _url(self, request: HttpRequest, view: str) -> str:
        """A page of this admin that leads back to the list as it was filtered."""
        url = reverse(f"admin:{self._url_name(view)}", current_app=self.admin_site.name)
        filters = self.get_preserved_filters(request)
        return add_preserved_filters({"opts": self.opts, "preserved_filters": filters}, url)

    @admin.action(
        permissions=["release"],
        description=gettext_lazy("Release selected %(verbose_name_plural)s"),
    )
    def release_selected(self, request: HttpRequest, queryset: LiveQuerySet) -> HttpResponse:
        """Ask before the selected locks are freed."""
        holds = holds_of(queryset[: MOST + 1])
        return self._confirm(request, holds, ReasonForm(), queryset.source)

    def release_view(self, request: HttpRequest) -> HttpResponse:
        """GET asks before the lock `name` (or its lease with this `fence`) is freed, POST frees.

        Raises:
            PermissionDenied: the user may not see and release locks.
            BadRequest: POST without the fields of the confirmation page.
        """
        if not self.has_release_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._posted(request)
        rows = self._rows(request, [request.GET.get("name", "")])
        holds = holds_of(rows)
        if fence := request.GET.get("fence"):
            holds = {lease: hold for lease, hold in holds.items() if str(lease.fence) == fence}
        return self._confirm(request, holds, ReasonForm(), rows.source)

    def _rows(self, request: HttpRequest, names: Iterable[str]) -> LiveQuerySet:
        rows: Any = self.get_queryset(request)
        found: LiveQuerySet = rows.filter(pk__in=names)
        return found

    def _posted(self, request: HttpRequest) -> HttpResponse:
        leases = [Lease.parse(text) for text in request.POST.getlist("lease")[:MOST]]
        if not leases:
            raise BadRequest("no lease")
        # Read again: a project may narrow get_queryset() to what this user may see.
        rows = self._rows(request, {lease.name for lease in leases})
        now = holds_of(rows)
        form = ReasonForm(request.POST)
        holds = {lease: now.get(lease) for lease in leases}
        if rows.source.problem or not form.is_valid():
            return self._confirm(request, holds, form, rows.source)
        return self._release(request, holds, form.cleaned_data["reason"])

    def _confirm(
        self, request: HttpRequest, holds: Holds, form: ReasonForm, source: Source
    ) -> HttpResponse:
        if source.problem:
            self.message_user(request, source.problem, messages.ERROR)
        unknown = "" if source.problem else _("no longer holds it")
        context = {
            **self.admin_site.each_context(request),
            "title": _("Release %(name)s") % {"name": self.opts.verbose_name_plural},
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "original": _("Release"),  # where the breadcrumbs end
            "has_view_permission": True,
            "holds": [_row(*pair, unknown) for pair in list(holds.items())[:MOST]],
            "more": len(holds) > MOST,
            "release_url": self._url(request, "release"),
            "list_url": self._url(request, "changelist"),
        }
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/release_confirmation.html"
        return TemplateResponse(request, template, context)

    def _release(self, request: HttpRequest, holds: Holds, reason: str) -> HttpResponse:
        released = 0
        for lease, hold in holds.items():
            try:
                if hold and self._release_one(request, lease, reason):
                    released += 1
                else:
                    self.message_user(request, self._refusal(request, lease), messages.WARNING)
            except PROBLEMS as error:
                self.message_user(request, explain(error), messages.ERROR)
                if not isinstance(error, LatchCorrupt):  # an outage, which meets the others too
                    break
        if released:
            text = ngettext(
                "%(count)d lease was released.", "%(count)d leases were released.", released
            )
            self.message_user(request, text % {"count": released}, messages.SUCCESS)
        return HttpResponseRedirect(self._url(request, "changelist"))

    def _refusal(self, request: HttpRequest, lease: Lease) -> str:
        """Why the lease could not be released, judged by who holds the lock by now."""
        now = holds_of(self._rows(request, [lease.name]))
        later = [hold for other, hold in now.items() if hold and other.fence > lease.fence]
        if not later:
            text = _("“%(name)s” was not released: its lease had already ended.")
            return text % {"name": lease.name}
        text = _(
            "“%(name)s” was not released: it was acquired again meanwhile, and %(holder)s keeps it."
        )
        return text % {"name": lease.name, "holder": later[-1].owner.describe()}

    def _release_one(self, request: HttpRequest, lease: Lease, reason: str) -> bool:
        user = cast("AbstractBaseUser", request.user)
        try:
            inventory.clear(
                lease.name,
                fence=lease.fence,
                fingerprint=lease.fingerprint,
                reason=reason,
                actor=f"{user._meta.label_lower}:{user.pk}",
            )
        except LatchNotHeld:
            return False
        with override(None):  # the history is read in any language
            message = _("Released the lease with fence %(fence)s. Reason: %(reason)s")
            message %= {"fence": lease.fence, "reason": reason}
        self.log_change(request, self.model(name=lease.name), message)
        return True
