"""The order of the demo: prepare, show the scenario, sum it up, stay up to be looked at."""

from __future__ import annotations

import io
import os
import secrets
import threading
from typing import NoReturn

import django
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from example_project.demo.console import Console
from example_project.demo.services import CONCURRENCY, Services

ADMIN = "admin"


def tour(console: Console, services: Services) -> bool:
    """Prepare all, run the scenario and print the summary; return whether all was as it must be."""
    console.line("django_latch: the same job never runs twice at once. A tour in six steps.")
    console.line(f"It runs on this machine, in {services.folder}, and leaves nothing behind.")
    prepare(console, services)
    from example_project.demo.scenario import Scenario  # needs Django to be set up

    scenario = Scenario(console, services)
    problems = scenario.run()
    found = scenario.findings
    console.heading("Summary")
    console.line(f"{found.sent} sent, {found.ran} ran, {found.skipped} skipped")
    for label, text in found.summary():
        console.fact(label, text)
    for problem in problems:
        console.problem(problem)
    return not problems


def prepare(console: Console, services: Services) -> None:
    """Start Valkey, the worker and the web server, with a database in between."""
    console.heading("Getting ready")
    server = services.start_valkey()
    console.fact("Valkey", f"{server.version}, embedded, at {server.url}")
    # This process too belongs to the example project now, whatever its user's settings are.
    os.environ.clear()
    os.environ.update(services.env)
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("add_sample_data", stdout=io.StringIO())
    console.fact("database", "SQLite, migrated, with sample data")
    services.start_worker()
    console.fact("worker", f"Celery, prefork, {CONCURRENCY} processes")
    console.fact("web server", services.start_web())


def stay(console: Console, services: Services) -> NoReturn:
    """Print where to look, and stay until a signal ends this."""
    from example_project.demo.scenario import send
    from example_project.demo.watch import Watch
    from example_project.invoicing.models import Account

    password = secrets.token_urlsafe(12)
    get_user_model().objects.create_superuser(ADMIN, password=password)
    for account in Account.objects.all()[:2]:  # so that there are locks to be seen
        send(account)
        Watch(services).holder(account)
    site = services.web_url.rstrip("/")
    console.heading("Now look around: two imports are running, until you let the bank answer")
    console.fact("locked jobs", site + reverse("admin:django_latch_activelock_changelist"))
    console.fact("invoicing", site + reverse("invoicing:overview"))
    console.fact("login", f"{ADMIN}  password {password}")
    console.line()
    console.line("  Ctrl-C stops everything.")
    pause = threading.Event()
    while True:
        pause.wait(1)
        services.check()
