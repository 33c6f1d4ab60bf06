"""`manage.py latch_list`: what is locked, by whom, and for how long; or the snapshots."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandParser

from django_latch import inventory
from django_latch.live import MAXIMUM
from django_latch.management import foreign
from django_latch.management.base import LatchCommand, matcher
from django_latch.snapshots import listing
from django_latch.text import duration

if TYPE_CHECKING:
    from django_latch.inventory import LockInfo
    from django_latch.snapshots.listing import SnapshotInfo


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAXIMUM):
        raise ArgumentTypeError(f"must be a number from 1 to {MAXIMUM}, not {text!r}")
    return int(text)


class Command(LatchCommand):
    """List the locks that are held, soonest expiry first."""

    help = "Lists the locks that are held or waited for, soonest expiry first."

    def add_arguments(self, parser: CommandParser) -> None:
        """A pattern and a limit, beside the common options."""
        super().add_arguments(parser)
        parser.add_argument(
            "pattern", nargs="?", help="Only these names: * is any text, ? is any character."
        )
        parser.add_argument(
            "--limit", type=_limit, default=1000, help="Most locks to list (default 1000)."
        )
        parser.add_argument(
            "--snapshots",
            action="store_true",
            help="List snapshots instead: their age, state, last error and compute time.",
        )
        foreign.add_arguments(parser)

    def run(self, options: Mapping[str, Any]) -> None:
        """Read and print; what was left out is told on stderr.

        Raises:
            CommandError: options that do not go together (2).
        """
        foreign.check(options, "snapshots")
        if options["foreign"]:
            foreign.show(self, options, [options["pattern"]] if options["pattern"] else [])
            return
        if options["snapshots"]:
            self.show_snapshots(options)
            return
        limit = options["limit"]
        if options["pattern"] is None:
            locks, cut = inventory.page(0, limit + 1), False
        else:
            matches = matcher(options["pattern"])
            locks, cut = inventory.scan(MAXIMUM)
            locks = [lock for lock in locks if matches(lock.name)]
        if options["format"] == "json":
            self.print_json([lock.as_dict() for lock in locks[:limit]])
        else:
            heads = ("NAME", "STATE", "HOLDER", "HELD FOR", "EXPIRES IN", "FENCE", "WAITERS")
            self.print_rows(heads, [row for lock in locks[:limit] for row in rows(lock)])
        if not locks:
            self.note("No lock is held.", options)
        if len(locks) > limit:
            self.note(f"Only the first {limit} are listed; see --limit.", options)
        if cut:
            self.note(f"There are more locks than the {MAXIMUM} looked through.", options)

    def show_snapshots(self, options: Mapping[str, Any]) -> None:
        """Read and print the snapshots."""
        limit, pattern = options["limit"], options["pattern"]
        found = listing.listed(limit + 1 if pattern is None else MAXIMUM)
        if pattern is not None:
            matches = matcher(pattern)
            found = [one for one in found if matches(one.name)]
        if options["format"] == "json":
            self.print_json([one.as_dict() for one in found[:limit]])
        else:
            heads = ("NAME", "STATE", "AGE", "COMPUTED IN", "REFRESHING", "FAILURES", "ERROR")
            self.print_rows(heads, [snapshot_row(one) for one in found[:limit]])
        if not found:
            self.note("Nothing is kept of any snapshot.", options)
        if len(found) > limit:
            self.note(f"Only the first {limit} are listed; see --limit.", options)


def snapshot_row(one: SnapshotInfo) -> tuple[object, ...]:
    """The line of a snapshot."""
    return (
        one.name,
        one.state,
        "-" if one.age is None else duration(one.age),
        "-" if one.took is None else f"{one.took:.3f} s",
        "yes" if one.refreshing else "no",
        one.failures,
        one.error or "-",
    )


def rows(lock: LockInfo) -> list[tuple[object, ...]]:
    """A line per holder, or one for a lock that is only waited for."""
    held: list[tuple[object, ...]] = [
        (
            lock.name,
            holder.state,
            holder.owner.describe(),
            duration(holder.held_for),
            duration(holder.expires_in),
            holder.fence,
            lock.waiters,
        )
        for holder in lock.holders
    ]
    return held or [(lock.name, "-", "-", "-", "-", "-", lock.waiters)]
