"""The jobs, each with another way to be run once at a time."""

from __future__ import annotations

from typing import Any

from celery import Task, shared_task
from django.core.files.base import ContentFile
from django.core.mail import send_mail

from django_latch import current_lease
from django_latch.celery import single_flight
from example_project.invoicing import bank, documents
from example_project.invoicing.models import OPEN, Account, Customer, Invoice, StatementImport
from example_project.invoicing.payments import book


# One import per account: a second call is skipped, since the running one brings the same news.
@single_flight(key="import:{account_id}")
@shared_task(bind=True, name="invoicing.import_statement")
def import_statement(self: Task, account_id: int) -> dict[str, Any]:
    """Ask the bank for a statement of the account and book it."""
    account = Account.objects.get(pk=account_id)
    lease = current_lease()
    if lease is None:  # a call with single_flight=False
        raise RuntimeError("an import cannot do without the lock: its fence protects the account")
    statement = StatementImport.objects.create(
        account=account, task_id=self.request.id, fence=lease.fence
    )
    # The bank takes its time. Should the lock be lost meanwhile, the job ends there and then.
    lines = bank.wait_for_statement(account, while_waiting=lease.ensure_held)
    return {"statement": statement.pk, "payments": book(statement, lines)}


# No key: the task's name and its arguments make it, so each day has a lock of its own.
@single_flight()
@shared_task(name="invoicing.nightly_statements")
def nightly_statements(day: str | None = None) -> int:
    """Start the import of every account. Two schedulers by mistake do no harm."""
    accounts = list(Account.objects.values_list("pk", flat=True))
    for pk in accounts:
        import_statement.delay(pk)
    return len(accounts)


# A second call must not be lost, because the invoice may have changed since: it is sent again
# until the running one is done. This uses up none of the task's own retries.
@single_flight(key="invoice-pdf:{invoice_id}", on_conflict="retry")
@shared_task(name="invoicing.render_invoice")
def render_invoice(invoice_id: int) -> str:
    """Write the PDF of an invoice."""
    invoice = Invoice.objects.select_related("customer").get(pk=invoice_id)
    invoice.pdf.save(f"{invoice.number}.pdf", ContentFile(documents.invoice_pdf(invoice)))
    return str(invoice.pdf.name)


def reminder_key(customer_id: int) -> str:
    """A callable makes the key where a template is not enough."""
    return f"reminder:{Customer.objects.get(pk=customer_id).email.lower()}"


# A second call fails with LatchBusy: a person started it and wants to know.
@single_flight(key=reminder_key, on_conflict="raise")
@shared_task(name="invoicing.send_reminder")
def send_reminder(customer_id: int) -> int:
    """Mail the customer a list of what is still to be paid."""
    customer = Customer.objects.get(pk=customer_id)
    invoices = list(customer.invoices.filter(OPEN))
    if invoices:
        lines = [f"{i.number}  EUR {i.amount}  due {i.due_on}" for i in invoices]
        send_mail("Unpaid invoices", "\n".join(lines), None, [customer.email])
    return len(invoices)
