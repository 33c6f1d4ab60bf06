"""The admin of `ApiToken`: made, shown once, and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_latch.models import ApiToken

if TYPE_CHECKING:
    Base = admin.ModelAdmin[ApiToken]
else:
    Base = admin.ModelAdmin

#: Who may free the locks of others in the admin.
FORCE: Final = ("django_latch.view_activelock", "django_latch.release_activelock")


class ApiTokenAdmin(Base):
    """Tokens are added and revoked, never changed or deleted: the list stays a record."""

    list_display = ("account", "scopes", "read_only", "may_force", "created_at", "revoked_at")
    list_filter = ("account", "read_only", "may_force")
    fields = ("account", "scopes", "read_only", "may_force")
    actions = ("revoke_selected",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> tuple[str, ...]:
        """Nobody gives away the right to force that they do not have themselves."""
        if all(map(request.user.has_perm, FORCE)):
            return ()
        return ("may_force",)

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """To revoke from the list; a single token is only shown."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Never."""
        return False

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: ModelForm[ApiToken], change: bool
    ) -> None:
        """Make the secret, and show it once."""
        secret = obj.issue()
        told = _("The secret of this token is shown only now:")
        messages.warning(request, format_html("{} <code>{}</code>", told, secret))

    @admin.action(description=gettext_lazy("Revoke the selected tokens"), permissions=["change"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """End them for good."""
        for token in queryset:
            token.revoke()
            self.log_change(request, token, _("Revoked."))
