"""``--foreign``: list and clear what celery-once and celery-singleton have left in Redis."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_latch.core.owner import clean
from django_latch.management.base import NOTHING_MATCHED, LatchCommand, matcher
from django_latch.store.foreign import PREFIX, ForeignKey, ForeignKeys
from django_latch.text import duration

HEADS = ("KEY", "LIBRARY", "EXPIRES IN", "OUTCOME")


def add_arguments(parser: CommandParser) -> None:
    """The options for the locks of other libraries."""
    parser.add_argument(
        "--foreign",
        action="store_true",
        help="The locks that celery-once and celery-singleton have left, instead of ours.",
    )
    parser.add_argument(
        "--url", help="With --foreign: the Redis database they are in; ours if not given."
    )
    parser.add_argument(
        "--prefix",
        default=PREFIX,
        help=f"With --foreign: celery-singleton's singleton_key_prefix (default {PREFIX}).",
    )


def check(options: Mapping[str, Any], *others: str) -> None:
    """Refuse options that do not go together.

    Parameters:
        options: what was given.
        others: options that are not for the locks of other libraries.

    Raises:
        CommandError: with exit code 2.
    """
    if not options["foreign"]:
        if options["url"] is not None or options["prefix"] != PREFIX:
            raise CommandError("--url and --prefix are for --foreign only.", returncode=2)
        return
    for other in others:
        if options[other]:
            raise CommandError(
                f"--foreign and --{other.replace('_', '-')} exclude each other.", returncode=2
            )


def show(command: LatchCommand, options: Mapping[str, Any], patterns: Sequence[str]) -> None:
    """List them.

    Parameters:
        command: prints.
        options: of the command line.
        patterns: only these keys; all if empty.
    """
    locks = _matching(ForeignKeys(options["url"], options["prefix"]), patterns)
    limit = options["limit"]
    _print(command, options, [(lock, "-") for lock in locks[:limit]])
    if not locks:
        command.note("No lock of another library.", options)
    if len(locks) > limit:
        command.note(f"Only the first {limit} are listed; see --limit.", options)


def clear(command: LatchCommand, options: Mapping[str, Any], patterns: Sequence[str]) -> None:
    """Delete them, each only if it still has the value that was listed.

    Parameters:
        command: prints, and asks.
        options: of the command line.
        patterns: only these keys; all if empty.

    Raises:
        CommandError: nothing matched (3); nobody to ask, or the answer was no (1).
    """
    keys = ForeignKeys(options["url"], options["prefix"])
    ask = options["interactive"] and not options["dry_run"]
    if ask and not sys.stdin.isatty():
        raise CommandError("There is no terminal to ask on; use --no-input or --dry-run.")
    locks = _matching(keys, patterns)
    if not locks:
        _print(command, options, [])
        raise CommandError("No lock of another library matches.", returncode=NOTHING_MATCHED)
    if ask:
        _confirm(command, locks)
    outcomes: list[tuple[ForeignKey, str]] = []
    try:
        for lock in locks:
            done = "would delete" if options["dry_run"] else _drop(keys, lock)
            outcomes.append((lock, done))
    finally:  # an outage half-way: what was done is told all the same
        _print(command, options, outcomes)


def _drop(keys: ForeignKeys, lock: ForeignKey) -> str:
    return "deleted" if keys.drop(lock) else "changed since"


def _matching(keys: ForeignKeys, patterns: Sequence[str]) -> list[ForeignKey]:
    tests = [matcher(pattern) for pattern in patterns]
    return [lock for lock in keys.find() if not tests or any(test(lock.name) for test in tests)]


def _confirm(command: LatchCommand, locks: Sequence[ForeignKey]) -> None:
    for lock in locks[:20]:
        command.stderr.write(f"  {clean(lock.name)}: {lock.library}")
    if len(locks) > 20:
        command.stderr.write(f"  and {len(locks) - 20} more")
    question = f"Delete these keys ({len(locks)})? Their jobs may still wait or run. Type 'yes': "
    command.stderr.write(question, ending="")
    command.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise CommandError("Nothing was deleted.")


def _print(
    command: LatchCommand, options: Mapping[str, Any], outcomes: Sequence[tuple[ForeignKey, str]]
) -> None:
    if options["format"] == "json":
        command.print_json([{**lock.as_dict(), "outcome": done} for lock, done in outcomes])
        return
    rows = [
        (
            lock.name,
            lock.library,
            "never" if lock.expires_in is None else duration(lock.expires_in),
            done,
        )
        for lock, done in outcomes
    ]
    command.print_rows(HEADS, rows)
