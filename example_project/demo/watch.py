"""Looks at locks and calls until something can be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db.models import QuerySet

from django_latch import Latch
from django_latch.inventory import HolderInfo
from example_project.demo.findings import UnexpectedError
from example_project.demo.services import Services
from example_project.invoicing.models import Account, SkippedCall, StatementImport
from example_project.invoicing.tasks import import_statement
from example_project.processes import POLL

WAIT = 60.0

T = TypeVar("T")


def lock_of(account: Account) -> Latch:
    """The lock of the account's import."""
    return import_statement.single_flight.lock(account.pk)


class Watch:
    """Waits at most WAIT seconds, and only while the demo's processes live."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def until(self, what: str, look: Callable[[], T | None]) -> T:
        """Call `look` until it returns something else than None, and return that.

        Raises:
            UnexpectedError: it never does; the message says `what` was looked for.
        """
        deadline = time.monotonic() + WAIT
        while (found := look()) is None:
            self.services.check()
            if time.monotonic() > deadline:
                raise UnexpectedError(f"{what}: not seen within {WAIT:g} s")
            time.sleep(POLL)
        return found

    def holder(self, account: Account) -> HolderInfo:
        """Who imports the account; waits until somebody does."""
        lock = lock_of(account)

        def look() -> HolderInfo | None:
            found = lock.inspect()
            return found.holder if found is not None else None

        return self.until(f"a holder of {lock.name}", look)

    def renewal(self, account: Account, before: HolderInfo) -> HolderInfo:
        """The lease of `before` with a later end; waits until it is renewed."""

        def look() -> HolderInfo | None:
            now = self.holder(account)
            if now.fence != before.fence:
                raise UnexpectedError(f"fence {before.fence} has lost its lock to {now.fence}")
            return now if now.expires_at > before.expires_at else None

        return self.until("a renewal", look)

    def free(self, account: Account) -> float:
        """Wait until nobody holds the account's lock; return for how long, in seconds."""
        start, lock = time.monotonic(), lock_of(account)
        self.until(f"an end of {lock.name}", lambda: True if lock.inspect() is None else None)
        return time.monotonic() - start

    def skipped(self, calls: list[str], count: int) -> QuerySet[SkippedCall]:
        """The records of `calls` that were skipped; waits until there are `count`."""
        found = SkippedCall.objects.filter(task_id__in=calls)
        self.until(f"{count} skipped calls", lambda: found.count() >= count or None)
        return found

    def finished(self, call: str) -> StatementImport:
        """What the import of `call` has done; waits until it has ended."""
        done = StatementImport.objects.filter(task_id=call, finished_at__isnull=False)
        return self.until(f"an end of the import {call}", done.first)
