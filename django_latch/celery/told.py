"""What logs and signals tell of a job that does not run now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django_latch.core.owner import Owner
from django_latch.exceptions import LatchError

if TYPE_CHECKING:
    from django_latch.celery.job import Job


def facts(job: Job, refusal: LatchError, reason: str) -> dict[str, Any]:
    """The payload of a signal.

    Parameters:
        job: the job that does not run now.
        refusal: why.
        reason: the same in a word.
    """
    return {
        "task": job.name,
        "key": job.key,
        "reason": reason,
        "holder": refusal.holder,
        "task_id": job.task_id or None,
    }


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
