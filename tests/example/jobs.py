"""Sends calls of the example's tasks to a running worker and prints as JSON what came of them.

Run by test_tasks.py as a program of its own, because it needs the example's settings.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import django

django.setup()

from example_project.invoicing import bank, tasks  # noqa: E402
from example_project.invoicing.models import (  # noqa: E402
    Account,
    Invoice,
    Payment,
    SkippedCall,
    StatementImport,
)
from example_project.invoicing.payments import TooLateError, book  # noqa: E402


def wait_for(what: str, look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)
    return seen


def nightly_run_beside_an_import() -> dict[str, Any]:
    """One import runs already when the nightly run starts all three."""
    first, *others = Account.objects.order_by("pk")
    running = tasks.import_statement.single_flight.is_running
    tasks.import_statement.delay(first.pk)
    wait_for("the first import", lambda: running(first.pk))
    tasks.nightly_statements.delay("2026-11-30")
    skipped = wait_for("a skipped call", SkippedCall.objects.first)
    for account in others:
        wait_for("another import", lambda account=account: running(account.pk))
    lines = bank.sample_lines(count=3)
    for account, line in zip((first, *others), lines, strict=True):
        bank.deliver_statement(account, [line])
    done = StatementImport.objects.filter(finished_at__isnull=False)
    wait_for("three imports", lambda: done.count() == 3)
    bank.deliver_statement(first, lines[:1])  # once more the same
    wait_for("the lock", lambda: not running(first.pk))
    tasks.import_statement.delay(first.pk)
    wait_for("four imports", lambda: done.count() == 4)
    return {
        "skipped": [skipped.key, skipped.reason, skipped.task],
        "booked": list(done.order_by("pk").values_list("account_id", "payments_count")),
        "payments": Payment.objects.count(),
        "paid": Invoice.objects.exclude(paid_on=None).count(),
    }


def late_writer() -> str:
    """An import that has lost its lock writes after a later one."""
    last = StatementImport.objects.order_by("fence")[0]
    old = StatementImport.objects.create(account=last.account, task_id="old", fence=1)
    try:
        book(old, [])
    except TooLateError as error:
        return str(error)
    return "it was let in"


def render_while_the_lock_is_taken() -> dict[str, Any]:
    """The call must not be lost: it is sent again until the lock is free."""
    with tasks.render_invoice.single_flight.lock(1):
        tasks.render_invoice.delay(1)
        tasks.render_invoice.delay(2)
        wait_for("the PDF of invoice 2", lambda: Invoice.objects.get(pk=2).pdf)
        early = bool(Invoice.objects.get(pk=1).pdf)
    invoice = wait_for("the PDF of invoice 1", Invoice.objects.exclude(pdf="").filter(pk=1).first)
    return {"early": early, "name": invoice.pdf.name, "begin": invoice.pdf.read(5).decode()}


def remind_while_the_lock_is_taken(customer: int) -> None:
    """The second call fails, as the worker's log says."""
    with tasks.send_reminder.single_flight.lock(customer):
        tasks.send_reminder.delay(customer)
        log = wait_for_log("LatchBusy")
    assert "Subject: Unpaid invoices" not in log
    tasks.send_reminder.delay(customer)
    wait_for_log("Subject: Unpaid invoices")


def wait_for_log(text: str) -> str:
    from django.conf import settings

    log = settings.DATA_DIR / "worker.log"
    wait_for(f"{text} in the log", lambda: text in log.read_text())
    return str(log.read_text())


remind_while_the_lock_is_taken(customer=1)
outcome = {
    "nightly": nightly_run_beside_an_import(),
    "late": late_writer(),
    "render": render_while_the_lock_is_taken(),
}
json.dump(outcome, sys.stdout)
