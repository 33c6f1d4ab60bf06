"""What the commands share: exit codes, formats, texts that are safe for a terminal."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_latch.core.owner import clean
from django_latch.exceptions import LatchError, LatchUnavailable

#: Exit codes beside 0 (done), 1 (any other CommandError) and 2 (usage, by argparse).
NOTHING_MATCHED = 3
NO_STORE = 4

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class LatchCommand(BaseCommand):
    """A command that reads or frees locks.

    System checks are not run: in an emergency it must work beside other parts' faults, and a
    faulty store has an exit code of its own.
    """

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The options of all commands."""
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="A table for people (default), or one JSON array of objects.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; turn an outage or a faulty store into its exit code.

        Raises:
            CommandError: see the exit codes of the module.
        """
        try:
            self.run(options)
        except (LatchUnavailable, ImproperlyConfigured) as error:
            raise CommandError(clean(error, 1000), returncode=NO_STORE) from error
        except LatchError as error:
            raise CommandError(clean(error, 1000)) from error

    def run(self, options: Mapping[str, Any]) -> None:
        """What the command does."""
        raise NotImplementedError

    def note(self, text: str, options: Mapping[str, Any]) -> None:
        """A line beside the data, to stderr; not with `--verbosity 0`."""
        if options["verbosity"] > 0:
            self.stderr.write(text, self.style.NOTICE)

    def print_rows(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table whose columns are as wide as they need, whatever the terminal."""
        if not rows:
            return
        lines = [[clean(cell, 1024) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        for line, style in ((heads, self.style.MIGRATE_HEADING), *((row, None) for row in lines)):
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.stdout.write(self._writable("  ".join(cells).rstrip()), style)

    def _writable(self, text: str) -> str:
        """With escapes for what the output's encoding does not have."""
        encoding = self.stdout.encoding or "utf-8"
        return text.encode(encoding, "backslashreplace").decode(encoding)

    def print_json(self, records: Sequence[Mapping[str, Any]]) -> None:
        """One JSON array, in ASCII: escapes keep control characters from the terminal."""
        self.stdout.write(json.dumps(records, indent=2))


def matcher(pattern: str) -> Callable[[str], object]:
    """A test of names: `*` is any text, `?` any character, everything else is itself.

    Brackets are no wildcards, so a name can be given as it is.
    """
    return re.compile(translate(pattern.replace("[", "[[]"))).match


def parse_duration(text: str) -> int:
    """Read `90`, `90s`, `15m`, `2h` or `1d12h` as seconds.

    Raises:
        ArgumentTypeError: it is none of these; argparse makes a usage error of it.
    """
    if not re.fullmatch(r"[0-9]+|([0-9]+[smhd])+", text):
        raise ArgumentTypeError(f"{text!r} is no duration; write 90, 90s, 15m, 2h or 1d12h")
    parts = re.findall(r"([0-9]+)([smhd]?)", text)
    return sum(int(number) * _UNITS[unit] for number, unit in parts)
