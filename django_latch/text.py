"""Texts for people that the admin and the commands share."""

from __future__ import annotations

from django.utils.translation import gettext as _


def duration(seconds: float) -> str:
    """`seconds` as a short text of at most two units, in the active language."""
    total = max(int(seconds), 0)
    minutes, second = divmod(total, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    units = [
        (days, _("%(number)d d")),
        (hour, _("%(number)d h")),
        (minute, _("%(number)d min")),
        (second, _("%(number)d s")),
    ]
    first = next((at for at, (number, _unit) in enumerate(units) if number), 3)
    parts = [unit % {"number": number} for number, unit in units[first : first + 2] if number]
    return " ".join(parts) or units[-1][1] % {"number": 0}
