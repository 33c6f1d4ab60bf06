"""Freeing locks from the admin.

The confirmation page names each lease by its fence and its token's fingerprint, and what is
posted back is compared in Redis: a lock that was acquired again meanwhile is not freed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, override
from django.views.decorators.http import require_http_methods

from django_latch import inventory
from django_latch.admin.reading import PROBLEMS, Reading, explain
from django_latch.core.owner import clean
from django_latch.exceptions import LatchNotHeld
from django_latch.text import duration

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

    from django_latch.inventory import HolderInfo, LockInfo
    from django_latch.live import LiveQuerySet, Source

    Base = admin.ModelAdmin[Any]
else:
    Base = object

#: Most leases that one confirmation frees; Django takes 1000 form fields at most.
MOST = 100


class ReasonForm(forms.Form):
    """Why the locks are freed; kept in the admin's history and in the lock's events."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"), max_length=200, widget=AdminTextInputWidget
    )

    def clean_reason(self) -> str:
        """On one line, without control characters."""
        return clean(self.cleaned_data["reason"])


@dataclass(frozen=True, slots=True)
class Lease:
    """What names one lease without its token."""

    name: str
    fence: int
    fingerprint: str

    @classmethod
    def parse(cls, text: str) -> Lease:
        """Read a field of the confirmation form.

        Raises:
            BadRequest: it was not written by `__str__`.
        """
        found = re.fullmatch(r"([0-9]{1,19}):([0-9a-f]{8}):(.+)", text, re.DOTALL)
        if not found:
            raise BadRequest("malformed lease")
        return cls(name=found[3], fence=int(found[1]), fingerprint=found[2])

    def __str__(self) -> str:
        return f"{self.fence}:{self.fingerprint}:{self.name}"


Holds = dict[Lease, "HolderInfo | None"]


def holds_of(locks: Iterable[LockInfo]) -> Holds:
    """The leases that these locks' holders have now, in order."""
    return {
        Lease(lock.name, holder.fence, holder.fingerprint): holder
        for lock in locks
        for holder in lock.holders
    }


def _row(lease: Lease, hold: HolderInfo | None) -> dict[str, Any]:
    return {
        "lease": lease,
        "who": hold.owner.describe() if hold else _("no longer holds it"),
        "held_for": duration(hold.held_for) if hold else "",
    }


def _refusal(lease: Lease) -> str:
    """Why the lease could not be released, judged by who holds the lock by now."""
    lock = inventory.get(lease.name)
    later = [h for h in lock.holders if h.fence > lease.fence] if lock else []
    if not later:
        text = _("“%(name)s” was not released: its lease had already ended.")
        return text % {"name": lease.name}
    text = _(
        "“%(name)s” was not released: it was acquired again meanwhile, and %(holder)s keeps it."
    )
    return text % {"name": lease.name, "holder": later[-1].owner.describe()}


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
        holds = holds_of(lock.info for lock in queryset[: MOST + 1] if lock.info)
        return self._confirm(request, holds, ReasonForm(), queryset.source)

    def release_view(self, request: HttpRequest) -> HttpResponse:
        """GET asks before the lock `name` (or its lease with this `fence`) is freed, POST frees.

        Raises:
            PermissionDenied: the user may not see and release locks.
            BadRequest: POST without the fields of the confirmation page.
        """
        if not self.has_release_permission(request):
            raise PermissionDenied
        source = Reading()
        if request.method == "POST":
            leases = [Lease.parse(text) for text in request.POST.getlist("lease")[:MOST]]
            if not leases:
                raise BadRequest("no lease")
            form = ReasonForm(request.POST)
            if form.is_valid():
                return self._release(request, leases, form.cleaned_data["reason"])
            now = holds_of(source.named(dict.fromkeys(lease.name for lease in leases)))
            return self._confirm(request, {lease: now.get(lease) for lease in leases}, form, source)
        holds = holds_of(source.named(request.GET.getlist("name")[:1]))
        if fence := request.GET.get("fence"):
            holds = {lease: hold for lease, hold in holds.items() if str(lease.fence) == fence}
        return self._confirm(request, holds, ReasonForm(), source)

    def _confirm(
        self, request: HttpRequest, holds: Holds, form: ReasonForm, source: Source
    ) -> HttpResponse:
        if source.problem:
            self.message_user(request, source.problem, messages.ERROR)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Release %(name)s") % {"name": self.opts.verbose_name_plural},
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "original": _("Release"),  # where the breadcrumbs end
            "has_view_permission": True,
            "holds": [_row(lease, hold) for lease, hold in list(holds.items())[:MOST]],
            "more": len(holds) > MOST,
            "release_url": self._url(request, "release"),
            "list_url": self._url(request, "changelist"),
        }
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/release_confirmation.html"
        return TemplateResponse(request, template, context)

    def _release(self, request: HttpRequest, leases: list[Lease], reason: str) -> HttpResponse:
        released = 0
        for lease in leases:
            try:
                released += self._release_one(request, lease, reason)
            except PROBLEMS as error:
                self.message_user(request, explain(error), messages.ERROR)
                break
        if released:
            text = ngettext(
                "%(count)d lease was released.", "%(count)d leases were released.", released
            )
            self.message_user(request, text % {"count": released}, messages.SUCCESS)
        return HttpResponseRedirect(self._url(request, "changelist"))

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
            self.message_user(request, _refusal(lease), messages.WARNING)
            return False
        with override(None):  # the history is read in any language
            message = _("Released the lease with fence %(fence)s. Reason: %(reason)s")
            message %= {"fence": lease.fence, "reason": reason}
        self.log_change(request, self.model(name=lease.name), message)
        return True
