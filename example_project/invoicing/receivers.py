"""Keeps a record of calls that were skipped, for the overview page."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from django_latch.signals import task_skipped
from example_project.invoicing.models import SkippedCall


@receiver(task_skipped)
def remember_skipped_call(
    *,
    task: str,
    task_id: str,
    key: str,
    reason: str,
    holder: dict[str, Any] | None,
    **more: Any,
) -> None:
    SkippedCall.objects.create(
        task=task, task_id=task_id or "", key=key, reason=reason, holder=describe(holder)
    )


def describe(holder: dict[str, Any] | None) -> str:
    """One line about the public facts of a lock's holder."""
    if not holder:
        return "nobody any more"
    who = holder.get("task") or holder.get("label") or "a process"
    where = holder.get("worker") or holder.get("host") or "?"
    return f"{who} on {where} (pid {holder.get('pid', '?')})"[:500]
