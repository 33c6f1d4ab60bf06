"""The form that confirms a release: which leases, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import forms
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import BadRequest
from django.utils.translation import gettext_lazy

from django_latch.core.owner import clean

if TYPE_CHECKING:
    from django_latch.inventory import HolderInfo
    from django_latch.models import ActiveLock


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


def holds_of(rows: Iterable[ActiveLock]) -> Holds:
    """The leases that the holders of these locks have now, in order."""
    return {
        Lease(row.name, holder.fence, holder.fingerprint): holder
        for row in rows
        for holder in row.holders
    }
