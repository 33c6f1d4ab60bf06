"""Celery tasks of django_latch itself; Celery's autodiscovery imports this in every worker.

It imports on every supported Django, and without Celery, where there are none.
"""

from __future__ import annotations

from typing import Any

from django_latch.snapshots import worker

try:
    from celery import shared_task
except ImportError:  # nobody can ask for refresh="celery" then: see snapshots.background
    pass
else:

    @shared_task(name="django_latch.refresh_snapshot", ignore_result=True)  # type: ignore[untyped-decorator]
    def refresh_snapshot(**message: Any) -> None:
        """Compute a snapshot that another process was elected to compute.

        Parameters:
            message: see `snapshots.worker.refresh`.
        """
        worker.refresh(**message)

    def send_refresh(message: dict[str, Any]) -> None:
        """Send the task; its queue is a matter of Celery's ``task_routes``."""
        # What monitors show of the arguments: never the token.
        shown = repr({key: value for key, value in message.items() if key != "token"})
        refresh_snapshot.apply_async(kwargs=message, kwargsrepr=shown)
