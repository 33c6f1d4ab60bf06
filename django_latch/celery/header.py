"""What a message carries for us: one header, bound to the job it was made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

#: Name of the header. Not ``x-...``: Celery and brokers add and drop those themselves.
HEADER: Final = "django_latch"

#: Where the worker's main process leaves a run's token for the child. Never leaves the worker.
RUN: Final = "django_latch_run"


@dataclass(slots=True, kw_only=True)  # not frozen: that takes time at each run
class Carried:
    """What earlier hooks decided about a call, as retries and redelivered copies find it.

    Parameters:
        task_id: the job it was made for. Whoever copies all headers of a running task to a child
            copies this one too; the child has another id, so it does not count there.
        key: the lock's name; None: not made yet.
        tenant: what ``DJANGO_LATCH["NAMESPACE"]`` said at the sender: for a retry with others.
        waits: how often the message was sent again because of a conflict or an outage.
        off: the call was made with ``single_flight=False``.
        token: the secret of a lock that was taken when the message was sent; never shown.
        carries: the message carries the lock's next run.
        made: when the call was made, in microseconds of the sender's clock; where calls are merged.
    """

    task_id: str
    key: str | None = None
    tenant: str | None = None
    waits: int = 0
    off: bool = False
    token: str | None = field(default=None, repr=False)
    carries: bool = False
    made: int = 0

    def to_header(self) -> dict[str, Any]:
        """The header's value: plain values that every broker's header table can hold."""
        return {name: value for name in _FIELDS if (value := getattr(self, name))}


_FIELDS: Final = tuple(field.name for field in fields(Carried))

#: Of which type the facts are, read from a message that anybody may have written.
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("key", "tenant", "token"), str),
    **dict.fromkeys(("waits", "made"), int),
    **dict.fromkeys(("off", "carries"), bool),
}


def read(headers: Mapping[str, Any] | None, task_id: str | None) -> Carried | None:
    """The header of job `task_id`, or None where there is none or it belongs to another job."""
    facts = headers.get(HEADER) if headers else None
    if not isinstance(facts, dict) or not task_id or facts.get("task_id") != task_id:
        return None
    known: dict[str, Any] = {
        name: value
        for name, value in facts.items()
        if (kind := _TYPES.get(name)) is not None
        and isinstance(value, kind)
        and isinstance(value, bool) is (kind is bool)
    }
    return Carried(task_id=task_id, **known)


def strip(headers: Mapping[str, Any] | None) -> dict[str, Any]:
    """`headers` for sending a message again: without ours and without what a broker added."""
    return {
        name: value
        for name, value in (headers or {}).items()
        if name not in (HEADER, RUN, "redelivered") and not name.lower().startswith("x-")
    }
