"""The single-flight cached value: computed by one, shared by all."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, overload

from django_latch.snapshots.decorated import Decorated
from django_latch.snapshots.description import Snapshot
from django_latch.snapshots.results import FreshUntil, Pending, Report
from django_latch.snapshots.views import snapshot_view

__all__ = [
    "Decorated",
    "FreshUntil",
    "Pending",
    "Report",
    "Snapshot",
    "asnapshot",
    "snapshot",
    "snapshot_view",
]


@overload
def snapshot(name: str, compute: None = None, **options: Any) -> Snapshot: ...


@overload
def snapshot(name: str, compute: Callable[[], Any], **options: Any) -> Any: ...


def snapshot(name: str, compute: Callable[[], Any] | None = None, **options: Any) -> Any:
    """The value of a snapshot, or its description.

    With a compute, the value: ``snapshot("health", sweep, fresh_for=60)``. Without one, a
    `Snapshot`, which is also the decorator: ``@snapshot("health:{region}", fresh_for=60)``.

    Parameters:
        name, options: see `Snapshot`.
        compute: makes the value, without arguments; see `Snapshot.get`.

    Raises:
        See `Snapshot.get`.
    """
    described = _described(name, options)
    return described if compute is None else described.get(compute)


async def asnapshot(name: str, compute: Callable[[], Any], **options: Any) -> Any:
    """The async twin of `snapshot` with a compute, which may be async."""
    return await _described(name, options).aget(compute)


def _described(name: str, options: dict[str, Any]) -> Snapshot:
    try:
        return _kept(name, *options.items())
    except TypeError:  # something that cannot be a key, such as a dict of shapes
        return Snapshot(name, **options)


@lru_cache(maxsize=1024, typed=True)
def _kept(name: str, *options: tuple[str, Any]) -> Snapshot:
    return Snapshot(name, **dict(options))
