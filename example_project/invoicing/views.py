from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from celery import Task
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from kombu.exceptions import OperationalError

from django_latch import LatchUnavailable, snapshot_view
from django_latch.inventory import LockInfo
from django_latch.snapshots import Report
from example_project.invoicing import bank, tasks
from example_project.invoicing.health import health
from example_project.invoicing.models import Account, Invoice, SkippedCall, StatementImport


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    context = {
        "accounts": with_locks(request, Account.objects.all()),
        "invoices": Invoice.objects.select_related("customer"),
        "imports": StatementImport.objects.select_related("account")[:10],
        "skipped": SkippedCall.objects.all()[:5],
        "now": timezone.now(),
    }
    return render(request, "invoicing/overview.html", context)


def with_locks(
    request: HttpRequest, accounts: Iterable[Account]
) -> list[tuple[Account, LockInfo | None]]:
    """Each account with the lock of its running import, if one runs."""
    accounts = list(accounts)
    lock_of = tasks.import_statement.single_flight.lock
    try:
        return [(account, lock_of(account.pk).inspect()) for account in accounts]
    except LatchUnavailable as error:  # the page is useful without Redis, too
        messages.error(request, f"Which imports are running is not known: {error}")
        return [(account, None) for account in accounts]


@require_safe
def invoice(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Invoice.objects.select_related("customer"), pk=pk)
    return render(request, "invoicing/invoice.html", {"invoice": found})


@require_safe
def pdf(request: HttpRequest, pk: int) -> FileResponse:
    found = get_object_or_404(Invoice, pk=pk)
    if not found.pdf:
        raise Http404("The PDF of this invoice was not made yet.")
    return FileResponse(found.pdf.open("rb"), filename=f"{found.number}.pdf")


@require_POST
def start_import(request: HttpRequest, pk: int) -> HttpResponse:
    send(request, tasks.import_statement, get_object_or_404(Account, pk=pk).pk)
    return redirect("invoicing:overview")


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    account = get_object_or_404(Account, pk=pk)
    bank.deliver_statement(account, bank.sample_lines())
    messages.success(request, f"The bank has sent a statement of {account}.")
    return redirect("invoicing:overview")


@require_POST
def start_nightly(request: HttpRequest) -> HttpResponse:
    send(request, tasks.nightly_statements, timezone.localdate().isoformat())
    return redirect("invoicing:overview")


@require_POST
def start_render(request: HttpRequest, pk: int) -> HttpResponse:
    send(request, tasks.render_invoice, get_object_or_404(Invoice, pk=pk).pk)
    return redirect("invoicing:invoice", pk=pk)


@require_POST
def start_reminder(request: HttpRequest, pk: int) -> HttpResponse:
    send(request, tasks.send_reminder, get_object_or_404(Invoice, pk=pk).customer_id)
    return redirect("invoicing:invoice", pk=pk)


# 503 REDIS_DOWN says that Redis is down, and nothing else: that many ask at once, or that the sweep
# takes long, is no outage.
@login_not_required
@require_safe
@snapshot_view
def show_health(request: HttpRequest) -> Report:
    wanted = health if "full" in request.GET else health.shaped("compact")
    return wanted.report()


def send(request: HttpRequest, task: Task, *args: Any) -> None:
    """Send a call of `task`, and say so on the next page."""
    try:
        result = task.delay(*args)
    except OperationalError as error:
        messages.error(request, f"The broker cannot be reached, nothing was sent: {error}")
    else:
        messages.success(request, f"Sent: {task.name} ({result.id}).")
