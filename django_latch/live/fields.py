"""What a row of `ActiveLock` can be filtered and ordered by."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import FieldError
from django.db.models import Q

if TYPE_CHECKING:
    from django_latch.inventory import HolderInfo, LockInfo

Test = Callable[["LockInfo"], bool]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a row: the type of its values, and how a lock's are found."""

    kind: type[Any]
    values: Callable[[LockInfo], list[Any]]


def _of_lock(kind: type[Any], attribute: str) -> Field:
    return Field(kind, lambda lock: [getattr(lock, attribute)])


def _of_holders(kind: type[Any], path: str) -> Field:
    get: Callable[[HolderInfo], Any] = operator.attrgetter(path)
    return Field(kind, lambda lock: [get(holder) for holder in lock.holders])


FIELDS: Final = {
    "name": _of_lock(str, "name"),
    "waiters": _of_lock(int, "waiters"),
    "state": _of_holders(str, "state"),
    "fence": _of_holders(int, "fence"),
    "held_for": _of_holders(float, "held_for"),
    "expires_in": _of_holders(float, "expires_in"),
    "pid": _of_holders(int, "owner.pid"),
    **{
        name: _of_holders(str, f"owner.{name}")
        for name in ("label", "task", "task_id", "worker", "host")
    },
}

LOOKUPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "exact": operator.eq,
    "iexact": lambda have, want: str(have).casefold() == str(want).casefold(),
    "in": lambda have, want: have in want,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "contains": lambda have, want: str(want) in str(have),
    "icontains": lambda have, want: str(want).casefold() in str(have).casefold(),
    "startswith": lambda have, want: str(have).startswith(str(want)),
}


def field_of(name: str) -> Field:
    """The field called `name`.

    Raises:
        FieldError: there is none.
    """
    try:
        return FIELDS["name" if name == "pk" else name]
    except KeyError:
        raise FieldError(f"Cannot use {name!r}. Choices are: {', '.join(sorted(FIELDS))}") from None


def _condition(path: str, value: Any) -> Test:
    name, _, lookup = path.partition("__")
    field = field_of(name)
    try:
        compare = LOOKUPS[lookup or "exact"]
    except KeyError:
        raise FieldError(f"Unsupported lookup {lookup!r} for {name!r}") from None
    want = {field.kind(one) for one in value} if lookup == "in" else field.kind(value)
    return lambda lock: any(compare(have, want) for have in field.values(lock))


def test_of(q: Q) -> Test:
    """Turn a `Q` into a test of one lock.

    Raises:
        FieldError, ValueError, TypeError: it names an unknown field or lookup, or a value of a
            wrong type.
    """
    tests = [test_of(c) if isinstance(c, Q) else _condition(*c) for c in q.children]  # type: ignore[misc]
    if q.connector not in (Q.AND, Q.OR):
        raise FieldError(f"Unsupported connector {q.connector!r}")
    combine = any if q.connector == Q.OR and tests else all
    return lambda lock: combine(test(lock) for test in tests) is not q.negated


def sort_key(name: str) -> Callable[[LockInfo], tuple[bool, Any]]:
    """A key for `sort` by the field called `name`; a lock without holders is the greatest."""
    values = field_of(name).values
    return lambda lock: (not (found := values(lock)), found[0] if found else 0)
