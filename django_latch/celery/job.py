"""One call of a guarded function, as the guard sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django_latch.celery import told
from django_latch.celery.header import Carried
from django_latch.core.names import fit_name
from django_latch.core.owner import record

if TYPE_CHECKING:
    from django_latch.celery.guarded import Guarded
    from django_latch.celery.options import SingleFlight

#: Seconds after which Redis and SQS deliver an unacknowledged message again, unless configured.
_VISIBILITY_TIMEOUT = 3600
#: Kombu looks for such messages now and then only, by default every 100 seconds.
_SWEEP = 100


def identity_of(request: Any) -> str:
    """See `Job.identity`."""
    return f"{request.id}:{request.retries}:{request.replaced_task_nesting}"


@dataclass(kw_only=True, eq=False)  # not frozen: that takes time at each run
class Job:
    """A call that is about to run.

    Parameters:
        guarded: the guard and its options.
        task: the task; None for a guarded function that was called as a plain function.
        request: Celery's request of this run; None for a plain function.
        key: the lock's name.
        carried: our header of the message, if it had one.
        args, kwargs: the call's arguments, for the owner record only.

    Attributes:
        from_message: a worker runs it from a message, so that the message can be sent again.
        remember_for: seconds for which the broker may still deliver another copy; 0: it will not.
            The carrier of a next run counts too: whoever misses it sends it again.
    """

    guarded: Guarded
    task: Any
    request: Any
    key: str
    carried: Carried | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    from_message: bool = field(init=False)
    remember_for: float = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        self.from_message = request is not None and not (
            request.called_directly or request.is_eager
        )
        # Each run asks for it, several times.
        self.remember_for = self._copies_come_for() if self.from_message else 0

    @property
    def flight(self) -> SingleFlight:
        """The options."""
        return self.guarded.flight

    @property
    def name(self) -> str:
        """The task's name."""
        return self.guarded.label if self.task is None else str(self.task.name)

    @property
    def task_id(self) -> str:
        """The task's id; empty for a direct call."""
        return str(self.request.id or "") if self.request is not None else ""

    @cached_property
    def identity(self) -> str | None:
        """What is equal in two copies of one message and differs for anything else.

        A replacement keeps the task id and the retries of what it replaces, but not the nesting.
        """
        if not self.from_message:
            return None
        return identity_of(self.request)

    @property
    def waits(self) -> int:
        """How often the message was sent again because of a conflict or an outage."""
        return self.carried.waits if self.carried else 0

    @property
    def carries(self) -> bool:
        """Whether its message carries the lock's next run."""
        return self.carried is not None and self.carried.carries

    @property
    def copy_lock(self) -> str | None:
        """A lock of this job alone, where that of the key does not keep its copies apart.

        Copies of one message may meet while the key's lock is free, or has a permit left, or has
        been handed on to a retry.
        """
        flight = self.flight
        shared = flight.at == "enqueue" or flight.limit > 1 or flight.hold_on_retry
        if not shared or not self.remember_for:
            return None
        return copy_lock_of(self.task_id)

    def _copies_come_for(self) -> float:
        if not (self.task.acks_late or self.request.eta or self._is_copy or self.carries):
            return 0
        transport = self.task.app.conf.broker_transport_options or {}
        return float(transport.get("visibility_timeout") or _VISIBILITY_TIMEOUT) + _SWEEP

    @property
    def _is_copy(self) -> bool:
        return bool((self.request.delivery_info or {}).get("redelivered"))

    def record(self, *, runs: bool) -> str:
        """The facts about this job for the lock's record, as `Owner` writes it.

        Parameters:
            runs: whether it runs in this process; else its lock waits in a queue, in no process.
        """
        request, facts = self.request, {}
        argsrepr = kwargsrepr = None
        if request is not None:
            argsrepr, kwargsrepr = request.get("argsrepr"), request.get("kwargsrepr")
            facts = {
                "task_id": self.task_id,
                "worker": runs and request.hostname,
                "root_id": request.root_id,
                "parent_id": request.parent_id,
                "retries": request.retries,
            }
        args = told.arguments(argsrepr, self.args, kwargsrepr, self.kwargs)
        return record(self.name, process=runs, task=self.name, args=args, **facts)


def copy_lock_of(task_id: str) -> str:
    """The name of the lock that keeps copies of a job apart; see `Job.copy_lock`."""
    return fit_name(f"celery-job:{quote(task_id)}")
