from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from django_latch import LatchBusy, latch
from example_project.invoicing.models import Account, Customer, Invoice

ACCOUNTS = [
    ("Current account", "DE02120300000000202051"),
    ("Savings account", "AT026000000001349870"),
    ("Card account", "NL91ABNA0417164300"),
]
CUSTOMERS = ["Alder Books", "Birch Bakery", "Cedar Cycles", "Dogwood Design"]
WORK = ["Shop front, spring season", "Web site, yearly care", "Printed flyers", "Photographs"]


class Command(BaseCommand):
    help = "Add bank accounts, customers and invoices to look at, once."

    def handle(self, *args: Any, **options: Any) -> None:
        # Two deployments that start at once: one fills the tables, the other sees the rows.
        try:
            # Released after the commit, so the next holder sees the rows.
            with latch("sample-data", timeout=0), transaction.atomic():
                added = self._add()
        except LatchBusy as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Sample data added." if added else "There is data already.")

    def _add(self) -> bool:
        if Account.objects.exists():
            return False
        today = timezone.localdate()
        for name, iban in ACCOUNTS:
            Account.objects.create(name=name, iban=iban)
        for number, (name, text) in enumerate(zip(CUSTOMERS * 3, WORK * 3, strict=True), start=1):
            email = f"{name.split()[0].lower()}@example.com"
            customer, _ = Customer.objects.get_or_create(name=name, defaults={"email": email})
            issued = today - timedelta(days=60 - 5 * number)
            Invoice.objects.create(
                number=f"{today:%Y}-{number:04}",
                customer=customer,
                text=text,
                amount=Decimal(7919 * number % 90_000) / 100 + 50,
                issued_on=issued,
                due_on=issued + timedelta(days=30),
            )
        return True
