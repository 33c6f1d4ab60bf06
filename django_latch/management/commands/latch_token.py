"""`manage.py latch_token`: the bearer tokens of the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from django_latch.management.base import NOTHING_MATCHED, LatchCommand
from django_latch.models import ApiToken


class Command(LatchCommand):
    """Make, list and revoke API tokens."""

    help = "Makes, lists and revokes the bearer tokens of the HTTP API."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and with which token, beside the common options."""
        super().add_arguments(parser)
        parser.add_argument("what", choices=("create", "list", "revoke"), help="What to do.")
        parser.add_argument(
            "which", nargs="?", help="create: the account. revoke: the id of a token, as listed."
        )
        parser.add_argument(
            "--scope",
            action="append",
            default=[],
            help="Start of the keys it may touch, of whole segments; * is every key. Repeatable.",
        )
        parser.add_argument("--read-only", action="store_true", help="It may only look.")
        parser.add_argument(
            "--force", action="store_true", help="It may free the locks of other holders."
        )

    def run(self, options: Mapping[str, Any]) -> None:
        """Dispatch; the secret of a new token goes to standard output, alone."""
        if options["what"] == "list":
            return self._list(options)
        if not options["which"]:
            which = "the account" if options["what"] == "create" else "the id of a token"
            raise CommandError(f"{options['what']} needs {which}; see --help", returncode=2)
        return self._create(options) if options["what"] == "create" else self._revoke(options)

    def _create(self, options: Mapping[str, Any]) -> None:
        if not options["scope"]:
            raise CommandError("create needs --scope; * is every key", returncode=2)
        token = ApiToken(
            account=options["which"],
            scopes="\n".join(options["scope"]),
            read_only=options["read_only"],
            may_force=options["force"],
        )
        try:
            token.clean_fields(exclude=["digest"])
        except ValidationError as error:
            told = (f"{field}: {' '.join(said)}" for field, said in error.message_dict.items())
            raise CommandError(" ".join(told)) from error
        secret = token.issue()
        self.note(f"Token {token.pk}. Its secret is shown only now:", options)
        if options["format"] == "json":
            self.print_json([{**_record(token), "token": secret}])
        else:
            self.stdout.write(secret)

    def _list(self, options: Mapping[str, Any]) -> None:
        tokens = [_record(token) for token in ApiToken.objects.order_by("pk")]
        if options["format"] == "json":
            self.print_json(tokens)
        elif tokens:
            rows = [list(map(_cell, record.values())) for record in tokens]
            self.print_rows([head.upper().replace("_", " ") for head in tokens[0]], rows)
        else:
            self.note("There is no token.", options)

    def _revoke(self, options: Mapping[str, Any]) -> None:
        which = options["which"]
        token = ApiToken.objects.filter(pk=which).first() if which.isdecimal() else None
        if token is None:
            raise CommandError(f"There is no token {which!r}.", returncode=NOTHING_MATCHED)
        token.revoke()
        self.note(f"Token {token.pk} is revoked; servers notice within 10 seconds.", options)


def _record(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "account": token.account,
        "scopes": [scope.strip() for scope in token.scopes.split("\n")],
        "read_only": token.read_only,
        "may_force": token.may_force,
        "created_at": token.created_at.isoformat(),
        "revoked_at": token.revoked_at and token.revoked_at.isoformat(),
    }


def _cell(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else "-" if value is None else str(value)
