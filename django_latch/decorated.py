"""Functions whose every call runs under a lock."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django_latch.core.canonical import bind
from django_latch.current import AsCurrent
from django_latch.exceptions import LatchNotAcquired, LatchValueError

if TYPE_CHECKING:
    from django_latch.locks import Latch

P = ParamSpec("P")
R = TypeVar("R")


def locked(latch: Latch, function: Callable[P, R]) -> Callable[P, R]:
    """`function` with each call under `latch`, whose name may be a template over its arguments."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise LatchValueError(
            f"{function!r:.120} is a generator: it would run after its lock was released"
        )
    signature = inspect.signature(function)
    if latch.template:
        latch.template.check(signature, getattr(function, "__qualname__", repr(function)))

    def of(args: Any, kwargs: Any) -> Latch:
        if latch.template is None:
            return latch
        return latch.replace(name=latch.template.render(bind(signature, args, kwargs)))

    wrap = _async if inspect.iscoroutinefunction(function) else _sync
    return functools.wraps(function)(wrap(latch, of, function))


def _sync(latch: Latch, of: Callable[[Any, Any], Latch], function: Callable[..., Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            lease = of(args, kwargs).acquire()
        except LatchNotAcquired as refusal:
            if latch.on_conflict == "skip" and not refusal.unanswered:
                return latch.skip_value
            raise
        with lease, AsCurrent(lease):
            return function(*args, **kwargs)

    return call


def _async(latch: Latch, of: Callable[[Any, Any], Latch], function: Callable[..., Any]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            lease = await of(args, kwargs).aacquire()
        except LatchNotAcquired as refusal:
            if latch.on_conflict == "skip" and not refusal.unanswered:
                return latch.skip_value
            raise
        async with lease:
            with AsCurrent(lease):
                return await function(*args, **kwargs)

    return call
