"""The compute itself, under its lease: the value is published, or the failure is remembered."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction

from django_latch import signals
from django_latch.core.calls import Work
from django_latch.core.flow import Flow
from django_latch.core.owner import clean
from django_latch.core.snapshot import ERROR
from django_latch.core.timing import now
from django_latch.current import AsCurrent
from django_latch.exceptions import LatchValueError
from django_latch.snapshots.results import FreshUntil, Report

if TYPE_CHECKING:
    from django_latch.snapshots.place import Place
    from django_latch.snapshots.refresh import Refresh

#: What is, or was, being computed around the running code. A task or a thread that a compute has
#: begun inherits it, and may go on when that is over.
_around: ContextVar[tuple[Computing, ...]] = ContextVar("django_latch_snapshots", default=())


def path_to(place: Place) -> list[str]:
    """The names from a snapshot that is being computed around here down to the running code."""
    around = [computing.place for computing in _around.get() if computing.goes_on]
    names = [other.label for other in around]
    keys = [other.key for other in around]
    return names[keys.index(place.key) :] if place.key in keys else []


class Computing:
    """One compute of a snapshot.

    Attributes:
        is_async: what it returns is awaited.
        error: what it raised.
        goes_on: it has begun and is not over.
    """

    def __init__(self, place: Place, compute: Callable[[], Any], lease: Refresh) -> None:
        self.is_async = iscoroutinefunction(compute)
        self.place = place
        self.lease = lease
        self.error: BaseException | None = None
        self.goes_on = False
        self._compute = compute

    def run(self, outcome: str) -> Flow[Report]:
        """Compute, publish, and report what was made; an error is raised as it came."""
        place, lease = self.place, self.lease
        began = now()
        mark = _around.set((*_around.get(), self))
        self.goes_on = True
        try:
            with AsCurrent(lease):
                made = yield Work(self._compute)
            check_computed(made)
            values, fresh_for, deadline = self._shapes(made)
            raw = {shape: place.store.codec.encode(value) for shape, value in values.items()}
        except GeneratorExit:
            lease.free_soon()
            raise
        except Exception as error:
            self.error = error
            yield from lease.failing(describe(error))
            self.tell("failed", now() - began)
            raise
        except BaseException as error:
            self.error = error
            yield from lease.freeing()
            raise
        finally:
            self.goes_on = False
            with suppress(ValueError):  # closed in another context than begun
                _around.reset(mark)
        took = now() - began
        fresh = self._fresh(fresh_for, deadline)
        published = yield from lease.publishing(raw, took, fresh_for, deadline)
        self.tell(published, took)
        if place.options.on_outage == "local" and not lease.refused:
            for shape, value in raw.items():
                place.outage.keep(place.wanted.name, shape, value, fresh)
        return Report(
            name=place.label,
            state="hit",
            outcome=outcome,
            value=values[place.wanted.shape],
            fresh_for=fresh,
            took=took,
            fence=lease.fence if published == "published" else 0,
        )

    def _shapes(self, made: Any) -> tuple[dict[str, Any], float | None, float]:
        """The shapes of what was computed, and what limits their freshness."""
        fresh_for, deadline = None, 0.0
        if isinstance(made, FreshUntil):
            fresh_for, deadline = made.limits()
            made = made.value
        return shapes(self.place, made), fresh_for, deadline

    def _fresh(self, seconds: float | None, deadline: float) -> float:
        """How long the value is fresh; until a deadline, by the clock of this machine."""
        limits = [self.place.wanted.fresh_for]
        if seconds is not None:
            limits.append(seconds)
        if deadline:
            limits.append(max(deadline - time.time(), 0.0))
        return min(limits)

    def tell(self, outcome: str, took: float) -> None:
        """Send the signal about this compute."""
        if signals.snapshot_computed.receivers:
            signals.send(
                signals.snapshot_computed,
                name=self.place.label,
                outcome=outcome,
                fence=self.lease.fence,
                took=took,
            )


def check_computed(made: Any) -> None:
    """Refuse what would have to be awaited first.

    Raises:
        LatchValueError: the compute is async, and nothing here can await it.
    """
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        raise LatchValueError(
            "the compute is async: use the async twin (asnapshot, aget), and an `async def` where "
            "it is to run in the background"
        )


def shapes(place: Place, value: Any) -> dict[str, Any]:
    """Every shape of a value, the value itself among them."""
    made = {name: make(value) for name, make in place.options.shapes.items()}
    return {"": value, **made}


def describe(error: BaseException) -> str:
    """An error in one line, as it is remembered."""
    return clean(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, ERROR)
