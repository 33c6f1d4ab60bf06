"""`manage.py latch_clear`: free locks that are stale, or that you name."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

from django_latch import inventory
from django_latch.core.owner import Owner, clean
from django_latch.exceptions import LatchCorrupt, LatchNotHeld
from django_latch.live import MAXIMUM
from django_latch.management import foreign
from django_latch.management.base import NOTHING_MATCHED, LatchCommand, matcher, parse_duration
from django_latch.stale import clear_stale

if TYPE_CHECKING:
    from django_latch.inventory import HolderInfo

HEADS = ("NAME", "OUTCOME", "HOLDER", "FENCE", "DETAIL")
NOT_HELD = "not held"
UNREADABLE = "unreadable"

#: Leases that the question lists by name.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one lease."""

    name: str
    outcome: str
    fence: int | None
    owner: Owner
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe; the holder's public facts."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "fence": self.fence,
            "holder": self.owner.as_dict(),
            "detail": self.detail,
        }

    def row(self) -> tuple[object, ...]:
        """A line of the table."""
        who = self.owner.describe() if self.fence else "-"
        return self.name, self.outcome, who, self.fence or "-", self.detail


class Command(LatchCommand):
    """Free locks by comparing their leases: what is acquired again meanwhile is never freed."""

    help = (
        "Frees locks. Alone, the stale ones: asks nothing and frees only what is provably dead. "
        "With a pattern, --all or --older-than also locks that are alive: asks first, or needs "
        "--no-input. Exit codes: 0 done, 1 error, 2 usage, 3 nothing matched, 4 no store."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What to free, and how, beside the common options."""
        super().add_arguments(parser)
        parser.add_argument(
            "pattern", nargs="*", help="Free these names: * is any text, ? is any character."
        )
        parser.add_argument(
            "--stale",
            action="store_true",
            help="Free what is provably dead: the default when nothing else is named.",
        )
        parser.add_argument("--all", action="store_true", help="Free every lock.")
        parser.add_argument(
            "--older-than",
            type=parse_duration,
            metavar="DURATION",
            help="Free leases held for at least 90, 90s, 15m, 2h or 1d12h, alive or not.",
        )
        parser.add_argument("--reason", default="", help="Why; kept in the lock's events.")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only print what would be freed."
        )
        parser.add_argument(
            "--no-input",
            "--noinput",
            action="store_false",
            dest="interactive",
            help="Do not ask.",
        )
        foreign.add_arguments(parser)

    def run(self, options: Mapping[str, Any]) -> None:
        """Free, print the outcomes, and fail if nothing matched.

        Raises:
            CommandError: options that exclude each other (2), nothing matched or was still held
                (3), nobody to ask or the answer was no (1).
        """
        foreign.check(options, "stale", "all", "older_than", "reason")
        if options["foreign"]:
            foreign.clear(self, options, options["pattern"])
            return
        named = bool(options["pattern"]) or options["older_than"] is not None
        kinds = (options["stale"], options["all"], bool(options["pattern"]))
        if sum(kinds) > 1 or (options["stale"] and named):
            raise CommandError("--stale, --all and a pattern exclude each other.", returncode=2)
        if named or options["all"]:
            self._clear_named(options)
        else:
            self._clear_stale(options)

    def _clear_stale(self, options: Mapping[str, Any]) -> None:
        cleared = clear_stale(dry_run=options["dry_run"], actor=_actor())
        verb = "would clear: " if options["dry_run"] else ""
        self._print(
            [Outcome(c.name, verb + c.what, c.fence, c.owner, c.detail) for c in cleared], options
        )
        if not cleared:
            self.note("Nothing is stale.", options)

    def _clear_named(self, options: Mapping[str, Any]) -> None:
        ask = options["interactive"] and not options["dry_run"]
        if ask and not sys.stdin.isatty():
            raise CommandError("There is no terminal to ask on; use --no-input or --dry-run.")
        holds = self._find(options)
        if not holds:
            self._print([], options)
            raise CommandError("No lock matches.", returncode=NOTHING_MATCHED)
        if ask:
            self._confirm(holds)
        outcomes: list[Outcome] = []
        try:
            for name, holder in holds:
                outcomes.append(self._outcome(name, holder, options))
        finally:  # an outage half-way: what was done is told all the same
            self._print(outcomes, options)
        if any(outcome.outcome == UNREADABLE for outcome in outcomes):
            raise CommandError("Some cannot be read; `manage.py latch_clear` alone repairs them.")
        if all(outcome.outcome == NOT_HELD for outcome in outcomes):
            raise CommandError("None of them was still held.", returncode=NOTHING_MATCHED)

    def _find(self, options: Mapping[str, Any]) -> list[tuple[str, HolderInfo]]:
        tests = [matcher(pattern) for pattern in options["pattern"]]
        least = options["older_than"] or 0
        locks, cut = inventory.scan(MAXIMUM)
        if cut:
            self.note(f"Only the first {MAXIMUM} locks are looked at; run it again.", options)
        return [
            (lock.name, holder)
            for lock in locks
            if not tests or any(test(lock.name) for test in tests)
            for holder in lock.holders
            if holder.held_for >= least
        ]

    def _confirm(self, holds: Sequence[tuple[str, HolderInfo]]) -> None:
        for name, holder in holds[:SHOWN]:
            self.stderr.write(f"  {clean(name)}: {holder.owner.describe()}")
        if len(holds) > SHOWN:
            self.stderr.write(f"  and {len(holds) - SHOWN} more")
        question = f"Free these leases ({len(holds)})? Their jobs may still run. Type 'yes': "
        self.stderr.write(question, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip() != "yes":
            raise CommandError("Nothing was freed.")

    def _outcome(self, name: str, holder: HolderInfo, options: Mapping[str, Any]) -> Outcome:
        """Free one lease. A lock that cannot be read is said to be so, and hurts no other."""
        try:
            done = "would free" if options["dry_run"] else self._free(name, holder, options)
        except LatchCorrupt as error:
            return Outcome(name, UNREADABLE, None, Owner(), str(error))
        return Outcome(name, done, holder.fence, holder.owner)

    @staticmethod
    def _free(name: str, holder: HolderInfo, options: Mapping[str, Any]) -> str:
        try:
            inventory.clear(
                name,
                fence=holder.fence,
                fingerprint=holder.fingerprint,
                reason=options["reason"],
                actor=_actor(),
            )
        except LatchNotHeld:
            return NOT_HELD
        return "freed"

    def _print(self, outcomes: Sequence[Outcome], options: Mapping[str, Any]) -> None:
        if options["format"] == "json":
            self.print_json([outcome.as_dict() for outcome in outcomes])
        else:
            self.print_rows(HEADS, [outcome.row() for outcome in outcomes])


def _actor() -> str:
    return f"latch_clear@{socket.gethostname()}"
