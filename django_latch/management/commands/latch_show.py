"""`manage.py latch_show`: everything about one lock; why a task did not run."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

from django_latch.management.base import LatchCommand
from django_latch.report import Report, report

if TYPE_CHECKING:
    from django_latch.celery.explain import Explanation


def _json(kind: type) -> Any:
    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ArgumentTypeError(f"no JSON: {error}") from error
        if not isinstance(value, kind):
            what = "an array, as [42]" if kind is list else 'an object, as {"account_id": 42}'
            raise ArgumentTypeError(f"must be {what}")
        return value

    return read


class Command(LatchCommand):
    """Show one lock: holder, queue, last end, next run, latest events."""

    help = "Shows all that is known of one lock: why did my task not run?"

    def add_arguments(self, parser: CommandParser) -> None:
        """A name, or a task and its arguments."""
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("name", nargs="?", help="The lock's name.")
        which.add_argument("--task", help="Or the full name of a Celery task.")
        parser.add_argument(
            # Django keeps `args` for itself.
            "--args",
            dest="call_args",
            type=_json(list),
            default=[],
            help="The call's arguments, a JSON array.",
        )
        parser.add_argument(
            "--kwargs",
            dest="call_kwargs",
            type=_json(dict),
            default={},
            help="Its keyword arguments, a JSON object.",
        )

    def run(self, options: Mapping[str, Any]) -> None:
        """Read and print."""
        found = self._of_task(options) if options["task"] else report(options["name"])
        if options["format"] == "json":
            self.print_json([found.as_dict()])
        else:
            for line in found.lines():
                self.stdout.write(self._writable(line))

    def _of_task(self, options: Mapping[str, Any]) -> Explanation | Report:
        from django_latch.celery.handle import handle_of

        try:
            return handle_of(options["task"]).explain(
                *options["call_args"], **options["call_kwargs"]
            )
        except TypeError as error:
            raise CommandError(f"{options['task']}: {error}") from error
