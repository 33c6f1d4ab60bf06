"""The options of a single-flight task, checked when they are written down."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeVar, overload

from django_latch.celery import install, placement
from django_latch.core.templates import Template
from django_latch.core.timing import SHORTEST, seconds
from django_latch.exceptions import LatchValueError

T = TypeVar("T")

#: Longest duration an option may name, in seconds; the settings MAX_TTL and so on are stricter.
_LONGEST: Final = 10 * 365 * 86400

#: option -> (words that work, words that belong to the design and are not built yet)
_WORDS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "at": (("run",), ("enqueue", "both")),
    "on_conflict": (("skip", "raise", "retry"), ("wait", "rerun")),
    "on_exhausted": (("raise", "skip"), ()),
    "on_lost": (("flag",), ("abort",)),
    "on_outage": (("retry", "raise", "run"), ()),
}

#: Options that belong to the design and are not built yet, with the only value they accept.
_LATER: Final[Mapping[str, Any]] = {
    "limit": 1,
    "enqueue_ttl": None,
    "timeout": None,
    "hold_on_retry": False,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class SingleFlight:
    """Options of a Celery task that never runs twice at once; also a decorator and a task option.

    Parameters:
        key: the lock's name: a template over the call's arguments (``"sync:{account_id}"``), a
            callable that gets the arguments and returns the name, or None for the task's name and
            all its arguments. Tasks with the same template share their locks.
        at: ``"run"``: a second call is refused while one runs.
        ttl: seconds or timedelta a dead run blocks the key at most; renewed while the run lives.
            None: ``DJANGO_LATCH["TTL"]``.
        on_conflict: what a call does that finds the lock held: ``"skip"`` returns `skip_value`,
            ``"raise"`` raises `LatchBusy`, ``"retry"`` sends the job again, later. Or a dict with
            the policy of each side, ``{"run": "skip"}``.
        on_lost: ``"flag"``: a run whose lock is lost goes on; the log, a signal and
            ``current_lease().ensure_held()`` tell.
        on_outage: what a call does that cannot reach the lock store: ``"retry"`` sends it again, at
            most `max_waits` times, then raises; ``"raise"`` raises `LatchUnavailable`; ``"run"``
            runs without the lock.
        max_waits: how often a job is sent again because of a conflict or an outage. The task's own
            retries are untouched.
        on_exhausted: what follows after `max_waits` conflicts: ``"raise"`` or ``"skip"``.
        skip_value: result of a skipped call.
        min_hold: seconds or timedelta for which the lock stays taken, even if the run is shorter.
        limit, enqueue_ttl, timeout, hold_on_retry: not available yet.

    Raises:
        LatchValueError: an option has a value that is not allowed; names both and the remedy.
        LatchNameError: the key is not a valid template.
    """

    key: str | Callable[..., str] | None = None
    at: Literal["run"] = "run"
    ttl: float | timedelta | None = None
    on_conflict: str | Mapping[str, str] = "skip"
    on_lost: Literal["flag"] = "flag"
    on_outage: Literal["retry", "raise", "run"] = "retry"
    max_waits: int = 20
    on_exhausted: Literal["raise", "skip"] = "raise"
    skip_value: Any = None
    min_hold: float | timedelta = 0
    limit: int = 1
    enqueue_ttl: float | timedelta | None = None
    timeout: float | timedelta | None = None
    hold_on_retry: bool = False

    def __post_init__(self) -> None:
        for option, only in _LATER.items():
            if getattr(self, option) != only:
                raise LatchValueError(f"single_flight: {option} is not available yet; leave it out")
        if isinstance(self.key, str):
            Template(self.key)
        elif self.key is not None and not callable(self.key):
            raise LatchValueError(
                f"single_flight: key must be a template, a callable or None, not {self.key!r:.80}"
            )
        elif inspect.iscoroutinefunction(self.key):
            raise LatchValueError("single_flight: key must be a plain function, not a coroutine")
        for option in _WORDS:
            if option != "on_conflict":
                _check_word(option, getattr(self, option))
        _check_word("on_conflict", self.policy)
        if (
            isinstance(self.max_waits, bool)
            or not isinstance(self.max_waits, int)
            or self.max_waits < 0
        ):
            raise LatchValueError(
                f"single_flight: max_waits must be a whole number from 0, not {self.max_waits!r:.80}"
            )
        if self.ttl is not None:
            _duration("ttl", self.ttl, SHORTEST)
        _duration("min_hold", self.min_hold, 0)

    @property
    def policy(self) -> str:
        """What a call does at run time that finds the lock held."""
        if not isinstance(self.on_conflict, Mapping):
            return self.on_conflict
        if extra := sorted(set(self.on_conflict) - {"run"}):
            raise LatchValueError(
                f"single_flight: on_conflict has {extra[0]!r}, but at={self.at!r} has the side "
                "'run' only; leave it out"
            )
        return self.on_conflict.get("run", "skip")

    @property
    def hold_seconds(self) -> float:
        """`min_hold` in seconds."""
        return _duration("min_hold", self.min_hold, 0)

    def __call__(self, target: T) -> T:
        """Decorate a task (from above) or a function that will become one (from below).

        The object given is returned as it is, or, for a function, a function with the same
        signature. No Celery app is finalised by this.
        """
        return placement.decorate(self, target)

    def __set_name__(self, owner: type, name: str) -> None:
        """As a task option or class attribute: guard the task class."""
        install.on_class(self, owner, name)


def _duration(option: str, value: object, least: float) -> float:
    return seconds(value, f"single_flight: {option}", least=least, most=_LONGEST)


def _check_word(option: str, value: object) -> None:
    works, later = _WORDS[option]
    if value in works:
        return
    if value in later:
        raise LatchValueError(
            f"single_flight: {option}={value!r} is not available yet; use one of {works}"
        )
    near = get_close_matches(str(value), works, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise LatchValueError(
        f"single_flight: {option} must be one of {', '.join(map(repr, works))}, "
        f"not {value!r:.80}{hint}"
    )


@overload
def single_flight(target: T, /) -> T: ...
@overload
def single_flight(
    *,
    key: str | Callable[..., str] | None = None,
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
