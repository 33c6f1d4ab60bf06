"""What logs, signals and owner records tell of a job."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from celery.utils.saferepr import saferepr

from django_latch import signals
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchError, LatchUnavailable

if TYPE_CHECKING:
    from django_latch.celery.job import Job
    from django_latch.celery.outgoing import Outgoing

logger = logging.getLogger("django_latch")

#: Most characters of positional, and of named arguments: as many as Celery shows of them.
SHOWN: Final = 1024


def facts(call: Job | Outgoing, refusal: LatchError, reason: str) -> dict[str, Any]:
    """The payload of a signal, and the attribute `latch` of a log record.

    Parameters:
        call: the call that did not get its lock, at its run or on its way.
        refusal: why.
        reason: the same in a word.
    """
    return {
        "task": call.name,
        "key": call.key,
        "reason": reason,
        "holder": refusal.holder,
        "task_id": call.task_id or None,
    }


def unguarded(call: Job | Outgoing, outage: LatchUnavailable, side: str) -> None:
    """Tell of a call that goes on without its lock.

    Parameters:
        call: the call.
        outage: why.
        side: `run` or `enqueue`.
    """
    payload = {**facts(call, outage, outage.reason or "unreachable"), "side": side}
    how = f"{'runs' if side == 'run' else 'sent'} without its lock"
    extra = {"latch": payload}
    logger.warning("%s: %s %s: %s", call.name, how, call.key, outage, extra=extra)
    signals.send(signals.task_unguarded, **payload)


def who(holder: Mapping[str, Any]) -> str:
    """The holder of a lock on one line."""
    return owner(holder).describe()


def owner(holder: Mapping[str, Any]) -> Owner:
    """The holder of a lock, from an error's dict."""
    return Owner.from_json(json.dumps(dict(holder)))


def age(holder: Mapping[str, Any]) -> str:
    """How long the holder has had the lock, for the log."""
    try:
        since = datetime.fromisoformat(str(holder.get("since")))
    except ValueError:
        return "an unknown time"
    return f"{max((datetime.now(UTC) - since).total_seconds(), 0):.1f} s"


def shown(request: Any) -> dict[str, str]:
    """How the sender of a message shows its arguments, as options for another one.

    It may hide secrets, with an empty text even.
    """
    texts = {name: request.get(name) for name in ("argsrepr", "kwargsrepr")}
    return {name: text for name, text in texts.items() if text is not None}


def arguments(argsrepr: str | None, args: Any, kwargsrepr: str | None, kwargs: Any) -> str:
    """The arguments of a call on one line, for people.

    Parameters:
        argsrepr, kwargsrepr: how the sender shows them, if that is known: it may hide secrets.
        args, kwargs: the arguments.
    """
    # Celery's function takes long even where there is nothing to show.
    if argsrepr is None:
        argsrepr = saferepr(tuple(args), SHOWN) if args else "()"
    if kwargsrepr is None:
        kwargsrepr = saferepr(dict(kwargs), SHOWN) if kwargs else "{}"
    return f"{argsrepr} {kwargsrepr}"
