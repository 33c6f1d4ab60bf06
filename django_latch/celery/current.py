"""The guarded runs that this thread, or greenlet, is in the middle of."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_latch.celery.holding import Holding
    from django_latch.celery.job import Job


@dataclass(slots=True, eq=False)
class Run:
    """A run in progress; `outer` is the run whose code called it, if any."""

    job: Job
    holding: Holding
    outer: Run | None


_current: ContextVar[Run | None] = ContextVar("django_latch_celery_run", default=None)
_parked: ContextVar[Run | None] = ContextVar("django_latch_celery_parked", default=None)


def runs() -> Iterator[Run]:
    """The runs in progress, the innermost first; then the one that is parked."""
    run = _current.get() or _parked.get()
    while run is not None:
        yield run
        run = run.outer


def park(job: Job, holding: Holding) -> None:
    """Keep the lock of a run that has just failed: Celery may be about to send its retry."""
    _parked.set(Run(job, holding, None))


def unpark(*, published: bool) -> None:
    """The task is over: release what is parked and was not handed on.

    Parameters:
        published: False if a retry could not be sent.
    """
    if (run := _parked.get()) is not None:
        _parked.set(None)
        if not published:
            run.holding.take_back()
        run.holding.release()


def enter(job: Job, holding: Holding) -> Token[Run | None]:
    """From here on `runs` begins with this run; until `leave`, with what this returns."""
    return _current.set(Run(job, holding, _current.get()))


leave = _current.reset
