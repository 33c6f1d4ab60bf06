"""Books what a bank statement reports."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from example_project.invoicing.models import OPEN, Account, Invoice, Payment, StatementImport


class TooLateError(Exception):
    """A later run has written already: this one has lost its lock without noticing."""


@transaction.atomic
def book(statement: StatementImport, lines: list[dict[str, Any]]) -> int:
    """Store `lines` as payments, close the invoices they pay, and return how many were new.

    A lease can be lost, say in a long pause of the machine. The fence, a number that only grows,
    makes that harmless: whoever comes with a lower fence than the last writer's is refused.

    Raises:
        TooLateError: a later run has written to this account.
    """
    accounts = Account.objects.filter(pk=statement.account_id, fence__lte=statement.fence)
    if not accounts.update(fence=statement.fence):
        raise TooLateError(f"fence {statement.fence} of {statement} is older than the account's")
    known = set(
        Payment.objects.filter(bank_id__in=[line["bank_id"] for line in lines]).values_list(
            "bank_id", flat=True
        )
    )
    new = [_payment(statement, line) for line in lines if line["bank_id"] not in known]
    Payment.objects.bulk_create(new)
    statement.payments_count = len(new)
    statement.finished_at = timezone.now()
    statement.save(update_fields=["payments_count", "finished_at"])
    return len(new)


def _payment(statement: StatementImport, line: dict[str, Any]) -> Payment:
    payment = Payment(
        statement=statement,
        bank_id=line["bank_id"],
        booked_on=date.fromisoformat(line["booked_on"]),
        reference=line["reference"],
        amount=Decimal(line["amount"]),
    )
    number = payment.reference.removeprefix("Invoice ")
    payment.invoice = Invoice.objects.filter(OPEN, number=number, amount=payment.amount).first()
    if payment.invoice is not None:
        payment.invoice.paid_on = payment.booked_on
        payment.invoice.save(update_fields=["paid_on"])
    return payment
