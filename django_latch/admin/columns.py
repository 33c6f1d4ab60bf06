"""The cells of the list, and the lines of a holder on the page of one lock."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.contrib import admin
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_latch.conf import conf
from django_latch.core.owner import clean
from django_latch.text import duration

if TYPE_CHECKING:
    from django_latch.inventory import HolderInfo
    from django_latch.models import ActiveLock

STATES = {
    "held": gettext_lazy("held"),
    "offered": gettext_lazy("offered"),
    "cooling": gettext_lazy("cooling down"),
    "corrupt": gettext_lazy("unreadable"),
}


def state_of(holder: HolderInfo) -> str:
    """The state of a hold, in words."""
    return str(STATES.get(holder.state, holder.state))


def who(holder: HolderInfo) -> str:
    """The task, or what the holder calls itself."""
    return clean(holder.owner.task or holder.owner.label)


def process_of(holder: HolderInfo) -> str:
    """The host, and the process id where it is known."""
    return clean(holder.owner.host) + (f" ({holder.owner.pid})" if holder.owner.pid else "")


def held(holder: HolderInfo) -> str:
    """How long, and the state unless simply held."""
    state = "" if holder.state == "held" else f" ({state_of(holder)})"
    return duration(holder.held_for) + state


def _when(moment: datetime, text: str) -> str:
    exact = localtime(moment).isoformat(" ", "seconds")
    return format_html('<span title="{}">{}</span>', exact, text)


def left(holder: HolderInfo) -> str:
    """How long the lease still lasts."""
    return duration(holder.expires_in) if holder.expires_in > 0 else _("expired")


def _moment(moment: datetime) -> str:
    local = localtime(moment)
    return _when(moment, f"{date_format(local)}, {local:%H:%M:%S}")  # seconds matter here


def task_link(task_id: str) -> str:
    """The task's id, as a link where the setting TASK_URL says where to."""
    if not (task_id and conf.task_url):
        return clean(task_id)
    url = conf.task_url.replace("{task_id}", quote(task_id, safe=""))
    return format_html('<a href="{}">{}</a>', url, clean(task_id))


def lines(holder: HolderInfo) -> list[tuple[str, Any]]:
    """All known facts of one holder, as pairs of a name and a value."""
    owner = holder.owner
    pairs = [
        (_("State"), state_of(holder)),
        (_("Label"), clean(owner.label)),
        (_("Task"), clean(owner.task)),
        (_("Task id"), task_link(owner.task_id)),
        (_("Arguments"), clean(owner.args, 1024)),
        (_("Retries"), owner.retries),
        (_("Worker"), clean(owner.worker)),
        (_("Host"), clean(owner.host)),
        (_("Process"), str(owner.pid) if owner.pid else ""),
        (_("Root task id"), clean(owner.root_id)),
        (_("Parent task id"), clean(owner.parent_id)),
        (_("More"), clean(json.dumps(owner.meta, default=str), 1024) if owner.meta else ""),
        (_("Acquired"), _moment(holder.acquired_at)),
        (_("Held for"), duration(holder.held_for)),
        (_("Expires"), _moment(holder.expires_at)),
        (_("Expires in"), left(holder)),
        (_("Lease"), duration(holder.ttl)),
        (_("Fence"), str(holder.fence)),
        (_("Fingerprint"), holder.fingerprint),
    ]
    return [(name, value) for name, value in pairs if value]


def of_first(lock: ActiveLock, show: Callable[[HolderInfo], str]) -> str | None:
    """What a column shows of the first holder; None where nobody holds the lock."""
    holder = lock.info.holder if lock.info else None
    return show(holder) if holder else None


class LockColumns:
    """Columns of the list. Those of a holder show the first one."""

    @admin.display(description=gettext_lazy("task"), ordering="task")
    def task(self, lock: ActiveLock) -> str | None:
        """The task or label, and how many more hold the lock."""
        others = len(lock.holders) - 1
        if others < 1:
            return of_first(lock, who)
        return of_first(
            lock,
            lambda holder: (
                _("%(holder)s and %(others)d more") % {"holder": who(holder), "others": others}
            ),
        )

    @admin.display(description=gettext_lazy("worker"), ordering="worker")
    def worker(self, lock: ActiveLock) -> str | None:
        """The worker's name."""
        return of_first(lock, lambda holder: clean(holder.owner.worker))

    @admin.display(description=gettext_lazy("process"), ordering="host")
    def process(self, lock: ActiveLock) -> str | None:
        """The host and the process."""
        return of_first(lock, process_of)

    @admin.display(description=gettext_lazy("held for"), ordering="held_for")
    def held_for(self, lock: ActiveLock) -> str | None:
        """How long, and the state unless simply held; the exact begin is the title."""
        return of_first(lock, lambda holder: _when(holder.acquired_at, held(holder)))

    @admin.display(description=gettext_lazy("expires in"), ordering="expires_in")
    def expires_in(self, lock: ActiveLock) -> str | None:
        """How long the lease lasts; its exact end is the title."""
        return of_first(lock, lambda holder: _when(holder.expires_at, left(holder)))

    @admin.display(description=gettext_lazy("fence"), ordering="fence")
    def fence(self, lock: ActiveLock) -> str | None:
        """The fence; as text, so that no thousands are grouped."""
        return of_first(lock, lambda holder: str(holder.fence))

    @admin.display(description=gettext_lazy("waiters"), ordering="waiters")
    def waiters(self, lock: ActiveLock) -> int:
        """How many wait."""
        return lock.info.waiters if lock.info else 0
