"""The checks of what a latch is made with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django_latch.core.owner import LEVELS, Owner, is_flat
from django_latch.core.timing import FOREVER, seconds
from django_latch.exceptions import LatchValueError

Seconds = float | timedelta

#: Most permits of one lock, and most waiters: a script looks at each of them.
PERMITS: Final = 1000
WAITERS: Final = 10_000

#: Most bytes of `meta`, as JSON.
META: Final = 4096


def duration(what: str, value: Seconds | None, least: float) -> float | None:
    """Seconds of an argument that may be omitted."""
    return None if value is None else seconds(value, what, least=least, most=FOREVER)


def within(what: str, value: float | None, default: float, most: float) -> float:
    """The value or its default; the setting's maximum holds for values given in code too."""
    if value is None:
        return default
    if value > most:
        raise LatchValueError(
            f"{what} is {value:g} s, more than DJANGO_LATCH['MAX_{what.upper()}'] ({most:g} s)"
        )
    return value


def count(what: str, value: int, least: int, most: int) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LatchValueError(
            f"{what} must be a whole number from {least} to {most}, not {value!r:.80}"
        )
    return value


def check_owner(owner: str | Owner | None, meta: Mapping[str, Any] | None) -> None:
    """A label or a whole record, and more facts of a bounded size."""
    if not isinstance(owner, str | Owner | None):
        raise LatchValueError(f"owner must be a label (str), not {owner!r:.80}")
    if meta is not None and not is_meta(meta):
        raise LatchValueError(
            f"meta must be a dict of plain JSON values, at most {META} bytes "
            f"and {LEVELS} levels of it"
        )


def is_meta(value: object) -> bool:
    """Whether these are facts that may be kept with a lock."""
    try:
        return isinstance(value, Mapping) and is_flat(value) and len(json.dumps(value)) <= META
    except (TypeError, ValueError):
        return False
