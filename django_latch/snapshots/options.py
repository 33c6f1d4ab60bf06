"""What a snapshot is made with, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from django_latch.arguments import PERMITS, Seconds, count, duration
from django_latch.core.names import check_characters
from django_latch.core.timing import FOREVER, SHORTEST, seconds
from django_latch.exceptions import LatchValueError

#: Default lease of whoever computes, in seconds: how long a dead one is waited for.
TTL: Final = 10.0

#: A value is kept for so many times its freshness, where nothing else is said.
KEPT: Final = 5

#: option -> the words it takes, the default first.
POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "on_busy": ("stale", "raise", "pending", "compute"),
    "on_outage": ("raise", "local", "compute"),
    "on_error": ("next", "raise", "stale"),
    "refresh": ("inline", "thread", "celery"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a snapshot, in seconds; see `Snapshot` for each."""

    fresh_for: float
    keep_for: float
    wait: float
    ttl: float | None
    max_hold: float
    on_busy: Literal["stale", "raise", "pending", "compute"]
    on_outage: Literal["raise", "local", "compute"]
    on_error: Literal["next", "raise", "stale"]
    refresh: Literal["inline", "thread", "celery"]
    permits: int
    shapes: Mapping[str, Callable[[Any], Any]]
    shape: str
    using: str | None


def check(
    *,
    fresh_for: Seconds,
    keep_for: Seconds | None,
    wait: Seconds,
    ttl: Seconds | None,
    max_hold: Seconds,
    permits: int,
    shapes: Mapping[str, Callable[[Any], Any]] | None,
    shape: str,
    using: str | None,
    **policies: str,
) -> Options:
    """Check the arguments of a snapshot.

    Raises:
        LatchValueError: names the value and what may stand in its place.
    """
    fresh = seconds(fresh_for, "fresh_for", least=SHORTEST, most=FOREVER)
    kept = duration("keep_for", keep_for, SHORTEST)
    if kept is None:
        kept = min(fresh * KEPT, FOREVER)
    if kept < fresh:
        raise LatchValueError(
            f"keep_for is {kept:g} s, less than fresh_for ({fresh:g} s): a value cannot be fresh "
            f"for longer than it is kept"
        )
    for name, word in policies.items():
        if word not in POLICIES[name]:
            words = ", ".join(map(repr, POLICIES[name]))
            raise LatchValueError(f"{name} must be one of {words}, not {word!r:.80}")
    made = _shapes(shapes)
    if shape and shape not in made:
        known = ", ".join(map(repr, made)) or "none"
        raise LatchValueError(f"shape {shape!r:.80} is not one of `shapes`, which has {known}")
    return Options(
        fresh_for=fresh,
        keep_for=kept,
        wait=seconds(wait, "wait", least=0, most=FOREVER),
        ttl=duration("ttl", ttl, SHORTEST),
        max_hold=seconds(max_hold, "max_hold", least=SHORTEST, most=FOREVER),
        permits=count("permits", permits, 1, PERMITS),
        shapes=made,
        shape=shape,
        using=using,
        **cast(dict[str, Any], policies),
    )


def _shapes(
    shapes: Mapping[str, Callable[[Any], Any]] | None,
) -> dict[str, Callable[[Any], Any]]:
    made = dict(shapes or {})
    for name, make in made.items():
        if not isinstance(name, str) or not name or not callable(make):
            raise LatchValueError(
                f"shapes must be a dict of names and functions that make a shape from the value, "
                f"not {name!r:.40}: {make!r:.40}"
            )
        check_characters(name)
    return made
