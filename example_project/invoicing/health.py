"""What a monitor asks for: a sweep over all accounts, made once a minute whoever asks how often."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from django_latch import snapshot
from example_project.invoicing import tasks
from example_project.invoicing.models import Account


def compact(full: dict[str, Any]) -> dict[str, Any]:
    """The shape for a monitor that only wants a word."""
    accounts = full["accounts"]
    running = sum(account["importing"] for account in accounts)
    return {"status": full["status"], "accounts": len(accounts), "importing": running}


# Costly, so one process makes it and all share it: while the next one is made, the others answer
# with the last. Both shapes come from one sweep, and a reader fetches only its own.
@snapshot(
    "health", fresh_for=60, keep_for=300, wait=3, on_busy="pending", shapes={"compact": compact}
)
def health() -> dict[str, Any]:
    """Look at every account: one question to the database and one to Redis for each."""
    accounts = [_account(account) for account in Account.objects.all()]
    return {
        "status": "OK" if accounts else "EMPTY",
        "accounts": accounts,
        "checkedAt": timezone.now().isoformat(),
    }


def _account(account: Account) -> dict[str, Any]:
    lock = tasks.import_statement.single_flight.lock(account.pk).inspect()
    last = account.imports.exclude(finished_at=None).order_by("-finished_at").first()
    return {
        "name": account.name,
        "importing": lock is not None,
        "lastImport": last.finished_at.isoformat() if last else None,
    }
