"""Put the guard on a task or a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery import Task

from django_latch.celery import wrappers
from django_latch.celery.guarded import Guarded, guarded_of, is_bound
from django_latch.celery.handle import Handle
from django_latch.exceptions import LatchValueError

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight

ATTRIBUTE = "single_flight"


def on_function(flight: SingleFlight, function: Callable[..., Any]) -> Callable[..., Any]:
    """Guard a function that a task decorator above will make a task of.

    Raises:
        LatchValueError: it is a coroutine function, or guarded already; or the options want more
            than can be done from here: only a task that exists can decline to be sent.
        LatchNameError: the key's template does not fit its signature.
    """
    if flight.at != "run":
        raise LatchValueError(
            f"single_flight: at={flight.at!r} takes the lock when the call is sent, and under the "
            "task decorator nothing sees that; move @single_flight above it"
        )
    return wrappers.function(checked(flight, function, bound=None), function)


def on_task(flight: SingleFlight, task: Any) -> None:
    """Guard a task that exists. Doing it again changes nothing.

    Only this task is changed, not its class: others may share it.

    Raises:
        LatchValueError: its function is a coroutine function, or it has another guard.
        LatchNameError: the key's template does not fit its signature.
    """
    present = guarded_of(task)
    if present is not None:
        if present.flight is flight:
            return
        raise _twice(present.label)
    kind = type(task)
    guarded = checked(flight, bare_run(kind), bound=is_bound(kind))
    name = "_orig_run" if "_orig_run" in vars(task) else "run"  # inside autoretry, if any
    setattr(task, name, wrappers.run_of_task(guarded, getattr(task, name), task))
    task.apply_async = wrappers.apply_async_of_task(guarded, task)
    setattr(task, ATTRIBUTE, Handle(guarded, task))


def on_class(flight: SingleFlight, owner: Any, name: str) -> None:
    """Guard the tasks of a class, and of those derived from it, when they are made.

    Parameters:
        flight: the options.
        owner: the class in whose body they stand; Celery makes one for each task with options.
        name: the attribute they were given to.

    Raises:
        LatchValueError: this is not the attribute, or the class, where they take effect.
    """
    is_task = issubclass(owner, Task)
    if not is_task and name != ATTRIBUTE:
        return  # options kept somewhere for later use
    if not is_task or name != ATTRIBUTE:
        raise LatchValueError(
            f"SingleFlight options take effect as {ATTRIBUTE!r} of a celery.Task class only, "
            f"not as {name!r} of {owner.__qualname__}"
        )
    make = owner.__new__

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        task = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        chosen = getattr(cls, ATTRIBUTE)  # a derived class may have options of its own, or None
        if chosen is not None:
            on_task(chosen, task)
        return task

    owner.__new__ = __new__


def checked(flight: SingleFlight, function: Callable[..., Any], *, bound: bool | None) -> Guarded:
    """The guard for `function`, if it can have one.

    Parameters:
        flight: the options.
        function: what will run.
        bound: as for `Guarded`.

    Raises:
        LatchValueError, LatchNameError: as `on_function` does.
    """
    guarded = Guarded(flight, function, bound=bound)
    if inspect.iscoroutinefunction(function):
        raise LatchValueError(
            f"single_flight: {guarded.label} is a coroutine function, and Celery runs none"
        )
    if Guarded.of(function) is not None:
        raise _twice(guarded.label)
    guarded.keys(None).check(guarded.label)
    return guarded


def bare_run(task_class: type) -> Callable[..., Any]:
    """The function behind ``run``, without what makes it a method."""
    run = inspect.getattr_static(task_class, "run")
    return run.__func__ if isinstance(run, (staticmethod, classmethod)) else run


def _twice(name: str) -> LatchValueError:
    return LatchValueError(f"single_flight: {name} has one already; keep one of the two")
