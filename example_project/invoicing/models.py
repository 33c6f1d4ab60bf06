from __future__ import annotations

from django.db import models
from django.db.models import Q


class Customer(models.Model):
    name = models.CharField(max_length=100)
    email = models.EmailField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Account(models.Model):
    """A bank account of ours, whose statements are imported."""

    name = models.CharField(max_length=100)
    iban = models.CharField(max_length=34, unique=True)
    fence = models.BigIntegerField(
        default=0,
        editable=False,
        help_text="The highest fence that wrote here; lower ones come too late.",
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class Invoice(models.Model):
    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="invoices")
    text = models.CharField(max_length=200)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    issued_on = models.DateField()
    due_on = models.DateField()
    paid_on = models.DateField(null=True, blank=True)
    pdf = models.FileField(upload_to="invoices", blank=True, editable=False)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return self.number


class StatementImport(models.Model):
    """One run of the import task."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="imports")
    task_id = models.CharField(max_length=50)
    fence = models.BigIntegerField()
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    payments_count = models.PositiveIntegerField("payments", default=0)

    class Meta:
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return f"{self.account} #{self.pk}"


class Payment(models.Model):
    """One line of a bank statement."""

    statement = models.ForeignKey(
        StatementImport, on_delete=models.CASCADE, related_name="payments"
    )
    bank_id = models.CharField(max_length=50, unique=True)
    booked_on = models.DateField()
    reference = models.CharField(max_length=200)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    invoice = models.ForeignKey(
        Invoice, on_delete=models.SET_NULL, null=True, related_name="payments"
    )

    class Meta:
        ordering = ["-booked_on", "-pk"]

    def __str__(self) -> str:
        return f"{self.reference} {self.amount}"


class SkippedCall(models.Model):
    """A call of a task that did not run because the same job was running."""

    task = models.CharField(max_length=255)
    task_id = models.CharField(max_length=50, db_index=True)
    key = models.CharField(max_length=255)
    reason = models.CharField(max_length=50)
    holder = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


#: Invoices that wait for their payment.
OPEN = Q(paid_on=None)
