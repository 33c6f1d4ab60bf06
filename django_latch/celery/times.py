"""How long a message may be under way, as its sender sees it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from celery.utils.time import maybe_make_aware

#: Seconds by which the clocks of sender, broker and worker may differ.
SKEW: Final = 5.0


def queue_seconds(task: Any, options: Mapping[str, Any], most: float) -> float:
    """How long a lock that travels with a message is needed, in seconds.

    Parameters:
        task: the task that is called.
        options: ``countdown``, ``eta`` and ``expires`` of the call, or of the message's headers.
        most: how long a message may wait once it is due.

    Returns:
        Until it expires, if it does; else until it is due, and `most`.
    """
    expires = options.get("expires")
    if expires is None:
        expires = task.expires
    if expires is not None:
        return max(_from_now(task, expires), 0.0) + SKEW
    due = options.get("countdown") or options.get("eta")
    return (max(_from_now(task, due), 0.0) if due else 0.0) + most


def _from_now(task: Any, when: Any) -> float:
    """Seconds until a moment, as Celery takes it: a number, a datetime, or its ISO form."""
    if isinstance(when, (int, float)):
        return float(when)
    moment = datetime.fromisoformat(when) if isinstance(when, str) else when
    aware: datetime = maybe_make_aware(moment, task.app.timezone)
    return aware.timestamp() - time.time()
