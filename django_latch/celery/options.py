"""The options of a single-flight task, checked when they are written down."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeVar, overload

from django_latch.arguments import PERMITS, count
from django_latch.celery import choices, install, placement
from django_latch.conf import conf
from django_latch.core.templates import Template
from django_latch.core.timing import SHORTEST
from django_latch.exceptions import LatchValueError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class SingleFlight:
    """Options of a Celery task that never runs twice at once; also a decorator and a task option.

    Parameters:
        key: the lock's name: a template over the call's arguments (``"sync:{account_id}"``), a
            callable that gets the arguments and returns the name, or None for the task's name and
            all its arguments. Tasks with the same template share their locks.
        at: ``"run"``: a second call is refused while one runs. ``"enqueue"``: while one is queued;
            the lock is free again when the run starts. ``"both"``: from the call to the end of the
            run.
        ttl: seconds or timedelta a dead run blocks the key at most; renewed while the run lives.
            None: ``DJANGO_LATCH["TTL"]``.
        enqueue_ttl: seconds or timedelta for which a queued job, or a retry that keeps the lock,
            blocks the key at most, after its ETA; with ``expires`` until then.
        limit: how many calls may have the lock at once.
        on_conflict: what a call does that finds the lock held: ``"skip"`` returns `skip_value`
            (when sending: the `AsyncResult` of the job that has it), ``"raise"`` raises
            `LatchBusy`, ``"rerun"`` asks for one more run after the present one, with the latest
            arguments. At the run also ``"retry"``: sends the job again, later; and ``"wait"``:
            waits in the queue for `timeout`. Or a dict by side: ``{"enqueue": ..., "run": ...}``.
        on_lost: ``"flag"``: a run whose lock is lost goes on; the log, a signal and
            ``current_lease().ensure_held()`` tell. ``"abort"``: in a prefork worker it also gets
            a `SoftTimeLimitExceeded`.
        on_outage: what a call does that cannot reach the lock store: ``"retry"`` sends it again, at
            most `max_waits` times, then raises; ``"raise"`` raises `LatchUnavailable`; ``"run"``
            goes on without the lock. Or a dict by side.
        timeout: seconds or timedelta to wait. None: ``DJANGO_LATCH["TIMEOUT"]``.
        max_waits: how often a job is sent again because of a conflict or an outage. The task's own
            retries are untouched.
        on_exhausted: what follows after `max_waits` conflicts or `timeout`: ``"raise"`` or
            ``"skip"``.
        skip_value: result of a skipped call.
        min_hold: seconds or timedelta for which the lock stays taken, even if the run is shorter.
        hold_on_retry: keep the lock until the retry runs, instead of giving it back.
        parent_heartbeat: in a prefork worker, let the main process renew the lock too, so that a
            call which holds Python's global lock for long does not lose it. A run that hangs keeps
            its lock then.

    Raises:
        LatchValueError: an option has a value that is not allowed; names both and the remedy.
        LatchNameError: the key is not a valid template.
    """

    key: str | Callable[..., str] | None = None
    at: Literal["run", "enqueue", "both"] = "run"
    ttl: float | timedelta | None = None
    enqueue_ttl: float | timedelta = 3600
    limit: int = 1
    on_conflict: str | Mapping[str, str] = "skip"
    on_lost: Literal["flag", "abort"] = "flag"
    on_outage: str | Mapping[str, str] = "retry"
    timeout: float | timedelta | None = None
    max_waits: int = 20
    on_exhausted: Literal["raise", "skip"] = "raise"
    skip_value: Any = None
    min_hold: float | timedelta = 0
    hold_on_retry: bool = False
    parent_heartbeat: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.key, str):
            Template(self.key)
        elif self.key is not None and not callable(self.key):
            raise LatchValueError(
                f"single_flight: key must be a template, a callable or None, not {self.key!r:.80}"
            )
        elif inspect.iscoroutinefunction(self.key):
            raise LatchValueError("single_flight: key must be a plain function, not a coroutine")
        choices.word("at", self.at, tuple(choices.SIDES))
        choices.word("on_lost", self.on_lost, ("flag", "abort"))
        choices.word("on_exhausted", self.on_exhausted, ("raise", "skip"))
        count("single_flight: max_waits", self.max_waits, 0, 10**9)
        count("single_flight: limit", self.limit, 1, PERMITS)
        for option, least in (("ttl", SHORTEST), ("timeout", 0)):
            if getattr(self, option) is not None:
                choices.duration(option, getattr(self, option), least)
        choices.duration("enqueue_ttl", self.enqueue_ttl, SHORTEST)
        choices.duration("min_hold", self.min_hold, 0)
        for option in ("hold_on_retry", "parent_heartbeat"):
            if not isinstance(getattr(self, option), bool):
                raise LatchValueError(
                    f"single_flight: {option} must be True or False, "
                    f"not {getattr(self, option)!r:.80}"
                )
        if self.hold_on_retry and self.at == "enqueue":
            raise LatchValueError(
                "single_flight: hold_on_retry keeps the lock of a run, and at='enqueue' takes none "
                "there; use at='both'"
            )
        _ = self.policies, self.outages  # checked as they are made

    @cached_property
    def policies(self) -> Mapping[str, str]:
        """What a call does that finds the lock held, by side; only the sides that `at` has."""
        return choices.conflicts(self.at, self.on_conflict)

    @cached_property
    def outages(self) -> Mapping[str, str]:
        """What a call does that cannot reach the lock store, by side."""
        return choices.outages(self.on_outage)

    @cached_property
    def reruns(self) -> bool:
        """Whether calls may be merged into one next run."""
        return "rerun" in self.policies.values()

    @property
    def lease_seconds(self) -> float:
        """`ttl` in seconds; the setting TTL where it is None."""
        return conf.ttl if self.ttl is None else choices.duration("ttl", self.ttl, SHORTEST)

    @cached_property
    def hold_seconds(self) -> float:
        """`min_hold` in seconds."""
        return choices.duration("min_hold", self.min_hold, 0)

    @cached_property
    def queue_seconds(self) -> float:
        """`enqueue_ttl` in seconds."""
        return choices.duration("enqueue_ttl", self.enqueue_ttl, SHORTEST)

    def __call__(self, target: T) -> T:
        """Decorate a task (from above) or a function that will become one (from below).

        The object given is returned as it is, or, for a function, a function with the same
        signature. No Celery app is finalised by this.
        """
        return placement.decorate(self, target)

    def __set_name__(self, owner: type, name: str) -> None:
        """As a task option or class attribute: guard the task class."""
        install.on_class(self, owner, name)


@overload
def single_flight(target: T, /) -> T: ...
@overload
def single_flight(
    *,
    key: str | Callable[..., str] | None = None,
    at: Literal["run", "enqueue", "both"] = "run",
    ttl: float | timedelta | None = None,
    on_conflict: str | Mapping[str, str] = "skip",
    **options: Any,
) -> SingleFlight: ...
def single_flight(target: Any = None, /, **options: Any) -> Any:
    """Make a Celery task run at most once at a time for each key; see `SingleFlight` for options.

    Write it above the task decorator; under it, or as the option
    ``@shared_task(single_flight=SingleFlight(...))``, it works too.

    Returns:
        A decorator; with a task or function as its only argument, that one, decorated.

    Raises:
        LatchValueError: an option is unknown or has a value that is not allowed.
    """
    known = [field.name for field in fields(SingleFlight)]
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise LatchValueError(f"single_flight: there is no option {option!r}{hint}")
    flight = SingleFlight(**options)
    return flight if target is None else flight(target)
