"""The bank: a mailbox per account in Redis. Whoever plays the bank decides when it answers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import redis
from django.conf import settings
from django.utils import timezone

from example_project.invoicing.models import OPEN, Account, Invoice

PATIENCE = 600.0
KEEP = 3600
# Below the 5 s after which a redis-py client gives up on a silent server.
SLICE = 1


class BankSilentError(Exception):
    """The bank sent no statement in time."""


def wait_for_statement(account: Account, while_waiting: Callable[[], None]) -> list[dict[str, Any]]:
    """Block until the bank has answered; call `while_waiting` about once a second.

    Raises:
        BankSilentError: no answer within PATIENCE seconds. And whatever `while_waiting` raises.
    """
    deadline = time.monotonic() + PATIENCE
    with _mailboxes() as mailboxes:
        while time.monotonic() < deadline:
            while_waiting()
            answer = mailboxes.blpop([_mailbox(account)], timeout=SLICE)
            if answer is not None:
                return json.loads(answer[1])
    raise BankSilentError(account.iban)


def deliver_statement(account: Account, lines: list[dict[str, Any]]) -> None:
    """Play the bank: answer with `lines`."""
    with _mailboxes() as mailboxes, mailboxes.pipeline() as pipe:
        pipe.rpush(_mailbox(account), json.dumps(lines))
        pipe.expire(_mailbox(account), KEEP)
        pipe.execute()


def sample_lines(count: int = 2) -> list[dict[str, Any]]:
    """Statement lines that pay the `count` oldest open invoices."""
    return [
        {
            "bank_id": uuid.uuid4().hex,
            "booked_on": timezone.localdate().isoformat(),
            "reference": f"Invoice {invoice.number}",
            "amount": str(invoice.amount),
        }
        for invoice in Invoice.objects.filter(OPEN).order_by("due_on", "pk")[:count]
    ]


def _mailbox(account: Account) -> str:
    return f"bank:{account.iban}"


def _mailboxes() -> redis.Redis:
    return redis.Redis.from_url(settings.BANK_MAILBOX_URL, decode_responses=True)
