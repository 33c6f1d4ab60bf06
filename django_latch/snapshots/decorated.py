"""Functions whose calls are answered by a snapshot."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from django_latch.core.canonical import bind
from django_latch.exceptions import LatchValueError
from django_latch.snapshots.description import Snapshot

#: Most names of one template that are kept ready.
NAMES: Final = 1024


class Decorated:
    """A function behind a snapshot: called as the function is, it gives the snapshot's value.

    Every method takes the arguments of the function. Those of an async function are awaited.

    Attributes:
        snapshot: the description; its name may be a template.
    """

    def __init__(self, snapshot: Snapshot, function: Callable[..., Any]) -> None:
        self.snapshot = snapshot
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        self._twins: dict[str, Decorated] = {}
        # By the name that the arguments make: what a snapshot knows of its place is costly.
        self._named = functools.lru_cache(NAMES)(lambda name: snapshot.replace(name=name))
        functools.update_wrapper(self, function)
        if self.is_async:
            markcoroutinefunction(self)

    __qualname__: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value."""
        at, compute = self.of(*args, **kwargs), self.computing(*args, **kwargs)
        return at.aget(compute) if self.is_async else at.get(compute)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method."""
        return self if instance is None else Bound(self, instance)

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__qualname__}, a {self.snapshot!r}>"

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """The value as in a call, in a `Report` with its age and what else is known."""
        at, compute = self.of(*args, **kwargs), self.computing(*args, **kwargs)
        return at.areport(compute) if self.is_async else at.report(compute)

    def peek(self, *args: Any, **kwargs: Any) -> Any:
        """What there is now, in a `Report`; nothing is computed."""
        at = self.of(*args, **kwargs)
        return at.apeek() if self.is_async else at.peek()

    def invalidate(self, *args: Any, **kwargs: Any) -> Any:
        """Forget the value; see `Snapshot.invalidate`."""
        at = self.of(*args, **kwargs)
        return at.ainvalidate() if self.is_async else at.invalidate()

    def shaped(self, shape: str) -> Decorated:
        """The same function, of whose value another shape is wanted."""
        if shape not in self._twins:
            self._twins[shape] = Decorated(self.snapshot.shaped(shape), self.function)
        return self._twins[shape]

    def of(self, *args: Any, **kwargs: Any) -> Snapshot:
        """The snapshot of a call with these arguments."""
        if self.snapshot.template is None:
            return self.snapshot
        arguments = bind(self._signature, args, kwargs)
        return self._named(self.snapshot.template.render(arguments))

    def computing(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """The compute of a call with these arguments."""
        return _Call(self, args, kwargs).compute()


class Bound(functools.partial[Any]):
    """A decorated function as a method: its first argument is the instance."""

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """See `Decorated.report`."""
        return self.func.report(*self.args, *args, **kwargs)  # type: ignore[attr-defined]

    def peek(self, *args: Any, **kwargs: Any) -> Any:
        """See `Decorated.peek`."""
        return self.func.peek(*self.args, *args, **kwargs)  # type: ignore[attr-defined]

    def invalidate(self, *args: Any, **kwargs: Any) -> Any:
        """See `Decorated.invalidate`."""
        return self.func.invalidate(*self.args, *args, **kwargs)  # type: ignore[attr-defined]

    def shaped(self, shape: str) -> Bound:
        """See `Decorated.shaped`."""
        return Bound(self.func.shaped(shape), *self.args)  # type: ignore[attr-defined]


class _Call:
    """A compute that knows what it is called with, so that a worker can make the same call."""

    def __init__(self, function: Decorated, args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def compute(self) -> Callable[[], Any]:
        """The compute, as a function of the kind that is decorated."""
        function = self.function.function
        if self.function.is_async:

            async def acompute() -> Any:
                return await function(*self.args, **self.kwargs)

            acompute.call = self  # type: ignore[attr-defined]
            return acompute

        def compute() -> Any:
            return function(*self.args, **self.kwargs)

        compute.call = self  # type: ignore[attr-defined]
        return compute


def decorated(snapshot: Snapshot, function: Callable[..., Any]) -> Decorated:
    """`function` with each call answered by `snapshot`."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise LatchValueError(f"{function!r:.120} is a generator: it has no value to keep")
    if not callable(function):
        raise LatchValueError(f"a snapshot decorates functions, not {function!r:.80}")
    if snapshot.template:
        what = getattr(function, "__qualname__", repr(function))
        snapshot.template.check(inspect.signature(function), what)
    return Decorated(snapshot, function)


def message(compute: Callable[[], Any]) -> dict[str, Any]:
    """What a worker needs to make the same compute: the function's path and its arguments.

    Raises:
        LatchValueError: it is not a decorated function that can be imported.
    """
    call = getattr(compute, "call", None)
    if not isinstance(call, _Call):
        raise LatchValueError(
            "refresh='celery' is for decorated functions, which a worker can import; decorate the "
            "function with @snapshot(...), or use refresh='thread'"
        )
    path = f"{call.function.__module__}:{call.function.__qualname__}"
    if "<locals>" in path:
        raise LatchValueError(
            f"refresh='celery': a worker cannot import {path}; move the function to a module"
        )
    return {"path": path, "args": list(call.args), "kwargs": call.kwargs}


def found(path: str) -> Decorated:
    """The decorated function of a message.

    Raises:
        LatchValueError: the path leads to something else.
    """
    module, _, name = path.partition(":")
    at: Any = import_module(module)
    for part in name.split("."):
        at = getattr(at, part, None)
    if not isinstance(at, Decorated):
        raise LatchValueError(f"{path} is not a function decorated with @snapshot")
    return at
