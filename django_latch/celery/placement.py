"""Where ``@single_flight`` stands, and when the task it stands above comes to exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from celery import Task, _state
from celery.local import PromiseProxy, Proxy

from django_latch.celery import install
from django_latch.exceptions import LatchError, LatchValueError

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight

T = TypeVar("T")


def decorate(flight: SingleFlight, target: T) -> T:
    """Guard a task, the promise of one, or a function that will become one.

    Parameters:
        flight: the options.
        target: what the decorator stands above. A promise is not kept by this: that would
            finalise the app while the project is still being imported.

    Returns:
        `target`; for a function, one that looks like it.

    Raises:
        LatchValueError: it cannot be guarded, or is already.
        LatchNameError: the key's template does not fit its signature.
    """
    kind: Any = type(target)  # isinstance() would keep the promise
    if kind in (Proxy, PromiseProxy):
        if (function := _promised(target)) is not None:
            install.checked(flight, function, bound=None)
        if kind is PromiseProxy:
            cast("Any", target).__then__(lambda: _on_task(flight, _kept(target)))
        else:
            _in_each_app(lambda app: _on_shared_task(flight, target, app))
        return target
    if isinstance(target, Task):
        _on_task(flight, target)
        return target
    if inspect.isroutine(target):
        return cast("T", install.on_function(flight, target))
    raise LatchValueError(
        f"single_flight cannot decorate {target!r:.80}: write it above or under the task "
        "decorator, or single_flight = SingleFlight(...) in the body of a task class"
    )


def _on_task(flight: SingleFlight, task: Any) -> None:
    """Guard a task and the copies that other apps have, or will have, of it."""
    install.on_task(flight, task)
    function = inspect.unwrap(install.bare_run(type(task)))

    def on_copy(app: Any) -> None:
        copy = app._tasks.get(task.name)
        if copy is not None and inspect.unwrap(install.bare_run(type(copy))) is function:
            _on_task_late(flight, copy)

    _in_each_app(on_copy)


def _on_shared_task(flight: SingleFlight, promise: Any, app: Any) -> None:
    with _as_current(app):
        _on_task_late(flight, _kept(promise))


def _on_task_late(flight: SingleFlight, task: Any) -> None:
    """Guard a task in a signal handler, where Celery logs an error and goes on.

    Going on without the lock would be worse than any error, so the task refuses to run.
    """
    try:
        install.on_task(flight, task)
    except LatchError as error:
        problem = error

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise problem

        task.run = task.apply_async = refuse
        raise


def _in_each_app(install_in: Callable[[Any], None]) -> None:
    """Call `install_in` for each app, now or as soon as its tasks exist."""
    for app in list(_state._get_active_apps()):
        if app.finalized:
            install_in(app)

    def finalising(app: Any) -> None:
        # Finalisers run in no order, so the task may not exist yet; afterwards all do.
        app.on_after_finalize.connect(lambda **_: install_in(app), weak=False)

    _state.connect_on_app_finalize(finalising)


@contextmanager
def _as_current(app: Any) -> Iterator[None]:
    """Let `app` be the current one: a shared task's promise looks it up there."""
    previous = _state._tls.current_app
    _state._set_current_app(app)
    try:
        yield
    finally:
        _state._set_current_app(previous)


def _kept(promise: Any) -> Any:
    return promise._get_current_object()


def _promised(promise: Any) -> Callable[..., Any] | None:
    """The function a promised task will run, for checks at import; None if it cannot be seen."""
    promised: Any
    if type(promise) is PromiseProxy:
        promised = getattr_of(promise, "_Proxy__args", (None,))[0]
    else:
        maker = getattr_of(promise, "_Proxy__local", None)
        promised = inspect.getclosurevars(maker).nonlocals.get("fun") if maker else None
    return promised if inspect.isroutine(promised) else None


def getattr_of(promise: Any, name: str, default: Any) -> Any:
    """An attribute of the promise itself, where getattr() would ask the task it promises."""
    try:
        return object.__getattribute__(promise, name)
    except AttributeError:
        return default
