"""What an admin page reads, and what it says when it cannot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext as _

from django_latch import inventory
from django_latch.exceptions import LatchCorrupt, LatchError
from django_latch.live import Source

if TYPE_CHECKING:
    from django_latch.inventory import LockInfo

logger = logging.getLogger("django_latch")
T = TypeVar("T")

#: What keeps a page from reading or freeing locks; everything else is a fault of ours.
PROBLEMS = (LatchError, ImproperlyConfigured)


def explain(error: Exception) -> str:
    """A problem of the store, for a page: without addresses or anything else of the settings."""
    if isinstance(error, LatchCorrupt):
        return str(error)
    if isinstance(error, LatchError):
        return _("The lock store gave no usable answer (%(reason)s).") % {
            "reason": error.reason or type(error).__name__
        }
    return _("The lock store is not configured correctly; “manage.py check” says what is wrong.")


@dataclass(frozen=True, slots=True)
class Ahead:
    """A page that was read together with the count."""

    total: int
    locks: list[LockInfo]
    offset: int
    limit: int
    reverse: bool

    def has(self, offset: int, limit: int, reverse: bool) -> bool:
        """Whether these locks are among it, as far as they exist."""
        whole = limit <= self.limit or self.offset + self.limit >= self.total
        return whole and (offset, reverse) == (self.offset, self.reverse)


class Reading(Source):
    """The reads of one request.

    The first problem ends them, so a page waits for a dead server once, and is remembered in
    `problem`; from then on everything is empty. `seen` has the locks of the last page or scan,
    `cut` says that a scan did not reach all.
    """

    def __init__(self) -> None:
        self.problem = ""
        self.cut = False
        self.seen: list[LockInfo] = []
        self._ahead: Ahead | None = None

    def _ask(self, read: Callable[[], T], otherwise: T) -> T:
        if self.problem:
            return otherwise
        try:
            return read()
        except PROBLEMS as error:
            logger.warning("the admin cannot read the locks: %s", error)
            self.problem = explain(error)
            return otherwise

    def ahead(self, offset: int, limit: int, *, reverse: bool) -> None:
        """Count the locks and read this page at once: a round trip less than one by one."""
        nothing: tuple[int, list[LockInfo]] = (0, [])
        found = self._ask(lambda: inventory.counted_page(offset, limit, reverse=reverse), nothing)
        self._ahead = Ahead(*found, offset, limit, reverse)

    def count(self) -> int:
        """As `Source`; 0 in case of a problem."""
        if self._ahead:
            return self._ahead.total
        return self._ask(super().count, 0)

    def page(self, offset: int, limit: int, *, reverse: bool) -> list[LockInfo]:
        """As `Source`; nothing in case of a problem."""
        if self._ahead and self._ahead.has(offset, limit, reverse):
            self.seen = self._ahead.locks[:limit]
            return self.seen
        read = super().page
        self.seen = self._ask(lambda: read(offset, limit, reverse=reverse), [])
        return self.seen

    def scan(self) -> tuple[list[LockInfo], bool]:
        """As `Source`; nothing in case of a problem."""
        nothing: tuple[list[LockInfo], bool] = ([], False)
        self.seen, self.cut = self._ask(super().scan, nothing)
        return self.seen, self.cut

    def named(self, names: Iterable[str]) -> list[LockInfo]:
        """As `Source`; nothing in case of a problem."""
        read = super().named
        return self._ask(lambda: read(names), [])
