"""`ActiveLock`'s rows: a look-alike of a queryset whose rows are read from Redis.

It answers what Django's admin asks of a queryset, and what a user of the ORM tries first. Like
a queryset it is immutable, lazy, and keeps the rows it has read. Fields, for filters and order:
`name` (or `pk`), `state`, `label`, `task`, `task_id`, `worker`, `host`, `pid`, `fence`,
`held_for`, `expires_in` (seconds), `waiters`. A lock with several holders matches a condition
when one of them does, and is ordered by the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, overload

from django.db.models import Q, QuerySet

from django_latch import inventory
from django_latch.live.fields import Test, field_of, sort_key, test_of

if TYPE_CHECKING:
    from django_latch.inventory import LockInfo
    from django_latch.models import ActiveLock

#: Most locks that are read to search, filter or sort; `cut` says when there were more.
MAXIMUM: Final = 10_000


class Source:
    """Where the rows come from. Each call is a bounded number of round trips.

    `problem`: why there are none, for a source that says so instead of raising.
    """

    problem = ""

    def count(self) -> int:
        """How many locks there are."""
        return inventory.count()

    def page(self, offset: int, limit: int, *, reverse: bool) -> list[LockInfo]:
        """`limit` locks from `offset` on, soonest expiry first (last, if `reverse`)."""
        return inventory.page(offset, limit, reverse=reverse)

    def scan(self) -> tuple[list[LockInfo], bool]:
        """Up to `MAXIMUM` locks, and whether there are more."""
        return inventory.scan(MAXIMUM)

    def named(self, names: Iterable[str]) -> list[LockInfo]:
        """The locks of these names, as far as they exist."""
        return inventory.several(names)


@dataclass(frozen=True)
class LiveQuerySet:
    """See the module's text. Errors of the store (`LatchUnavailable`) reach the caller."""

    model: type[ActiveLock]
    source: Source
    tests: tuple[Test, ...] = ()
    names: frozenset[str] | None = None
    order: tuple[str, ...] = ("expires_in",)
    start: int = 0
    stop: int | None = None

    # What Django's ChangeList looks at.
    ordered = True
    query = SimpleNamespace(select_related=False, order_by=())

    def _clone(self) -> LiveQuerySet:
        return self  # immutable, and the rows already read stay with it

    def all(self) -> LiveQuerySet:
        """The same rows, to be read again."""
        return replace(self)

    distinct = select_related = alias = lambda self, *args, **kwargs: self

    def using(self, alias: str | None) -> QuerySet[ActiveLock]:
        """Locks are in no database: an empty queryset, so that dumpdata and its like go on."""
        return QuerySet(self.model, using=alias).none()

    def none(self) -> LiveQuerySet:
        """No rows, without asking Redis."""
        return replace(self, names=frozenset())

    def filter(self, *args: Q, **kwargs: Any) -> LiveQuerySet:
        """The rows that match; see the module's text for fields, `LOOKUPS` for lookups.

        Raises:
            FieldError, ValueError, TypeError: as `test_of`.
        """
        names = self.names
        conditions = []
        for path, value in kwargs.items():
            if path in ("pk", "name", "pk__in", "name__in"):
                wanted = frozenset(map(str, value if path.endswith("__in") else [value]))
                names = wanted if names is None else names & wanted
            else:
                conditions.append(Q((path, value)))
        tests = tuple(test_of(q) for q in (*args, *conditions) if q)
        return self._narrowed(tests=self.tests + tests, names=names)

    def exclude(self, *args: Q, **kwargs: Any) -> LiveQuerySet:
        """The rows that do not match."""
        return self._narrowed(tests=(*self.tests, test_of(~Q(*args, **kwargs))))

    def search(self, words: Iterable[str]) -> LiveQuerySet:
        """The rows in whose name, label, task, task id, worker or host each word occurs."""
        places = ("name", "label", "task", "task_id", "worker", "host")
        found = [Q(*((f"{p}__icontains", word) for p in places), _connector=Q.OR) for word in words]
        return self.filter(*found)

    def _narrowed(self, **changes: Any) -> LiveQuerySet:
        if self.start or self.stop is not None:
            raise TypeError("Cannot filter or order once a slice has been taken.")
        return replace(self, **changes)

    def order_by(self, *names: str) -> LiveQuerySet:
        """The rows in this order; none given: soonest expiry first.

        Raises:
            FieldError: an unknown field.
        """
        for name in names:
            field_of(name.removeprefix("-"))
        return self._narrowed(order=names or ("expires_in",))

    @property
    def totally_ordered(self) -> bool:
        """Whether no two rows can be equal in order."""
        return any(name.removeprefix("-") in ("pk", "name") for name in self.order)

    @property
    def cut(self) -> bool:
        """Whether rows are missing because there are more than `MAXIMUM` locks; reads."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[ActiveLock], bool]:
        locks, cut = self._page() if self.is_page else self._found()
        return [self.model.from_info(lock) for lock in locks], cut

    @property
    def is_page(self) -> bool:
        """Whether the index knows the rows and their order; its ties are in order of names."""
        first, *rest = (name.removeprefix("-") for name in self.order)
        ordered = first == "expires_in" and set(rest) <= {"pk", "name"}
        return ordered and not self.tests and self.names is None

    @property
    def reverse(self) -> bool:
        """Whether the greatest in order come first."""
        return self.order[0][0] == "-"

    def admits(self, lock: LockInfo) -> bool:
        """Whether this lock would be among the rows, if it existed."""
        named = self.names is None or lock.name in self.names
        return named and all(test(lock) for test in self.tests)

    def _page(self) -> tuple[list[LockInfo], bool]:
        limit = MAXIMUM if self.stop is None else self.stop - self.start
        if limit <= 0:
            return [], False
        more = self.stop is None  # then one more row tells whether there are more
        locks = self.source.page(self.start, limit + more, reverse=self.reverse)
        return locks[:limit], len(locks) > limit

    def _found(self) -> tuple[list[LockInfo], bool]:
        if self.names is None:
            locks, cut = self.source.scan()
        else:
            locks, cut = self.source.named(self.names) if self.names else [], False
        found = [lock for lock in locks if all(test(lock) for test in self.tests)]
        for name in reversed(self.order):
            found.sort(key=sort_key(name.removeprefix("-")), reverse=name[0] == "-")
        return found[self.start : self.stop], cut

    def count(self) -> int:
        """How many rows there are (of the first `MAXIMUM`, if they must be read to know)."""
        if self.is_page and "_read" not in self.__dict__:
            total = self.source.count()
            stop = total if self.stop is None else min(self.stop, total)
            return max(stop - self.start, 0)
        return len(self)

    def exists(self) -> bool:
        """Whether there is a row."""
        return self.count() > 0

    def get(self, *args: Q, **kwargs: Any) -> ActiveLock:
        """The one row that matches.

        Raises:
            ActiveLock.DoesNotExist, ActiveLock.MultipleObjectsReturned: none does, or several.
        """
        rows = list(self.filter(*args, **kwargs))
        if not rows:
            raise self.model.DoesNotExist("ActiveLock matching query does not exist.")
        if len(rows) > 1:
            raise self.model.MultipleObjectsReturned(f"get() returned {len(rows)} ActiveLocks.")
        return rows[0]

    def first(self) -> ActiveLock | None:
        """The first row, or None."""
        return next(iter(self[:1]), None)

    def iterator(self, chunk_size: int | None = None) -> Iterator[ActiveLock]:
        """The rows, read now."""
        return iter(self.all())

    def __iter__(self) -> Iterator[ActiveLock]:
        return iter(self._read[0])

    def __len__(self) -> int:
        return len(self._read[0])

    def __bool__(self) -> bool:
        return bool(self._read[0])

    @overload
    def __getitem__(self, key: int) -> ActiveLock: ...
    @overload
    def __getitem__(self, key: slice) -> LiveQuerySet | list[ActiveLock]: ...
    def __getitem__(self, key: int | slice) -> ActiveLock | LiveQuerySet | list[ActiveLock]:
        if "_read" in self.__dict__:
            return self._read[0][key]
        if isinstance(key, int):
            return list(self[key : key + 1] if key >= 0 else self)[0 if key >= 0 else key]
        start, stop = key.start or 0, key.stop
        if start < 0 or (stop is not None and stop < 0) or key.step is not None:
            raise ValueError("Negative slices and steps are not supported.")
        bounds = [self.start + stop] if stop is not None else []
        bounds += [self.stop] if self.stop is not None else []
        return replace(self, start=self.start + start, stop=min(bounds, default=None))
