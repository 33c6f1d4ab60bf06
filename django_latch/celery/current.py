"""The guarded runs that this thread, or greenlet, is in the middle of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_latch.celery.holding import Holding
    from django_latch.celery.job import Job


@dataclass(frozen=True, eq=False)
class Run:
    """A run in progress; `outer` is the run whose code called it, if any."""

    job: Job
    holding: Holding
    outer: Run | None


_current: ContextVar[Run | None] = ContextVar("django_latch_celery_run", default=None)


def runs() -> Iterator[Run]:
    """The runs in progress, the innermost first."""
    run = _current.get()
    while run is not None:
        yield run
        run = run.outer


@contextmanager
def entered(job: Job, holding: Holding) -> Iterator[None]:
    """Inside, `runs` begins with this run."""
    mark = _current.set(Run(job, holding, _current.get()))
    try:
        yield
    finally:
        _current.reset(mark)
