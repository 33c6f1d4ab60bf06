"""The scenario: twenty calls of one job, a second job beside it, a renewed lock, a crash."""

from __future__ import annotations

import os
import signal
from collections import Counter

from celery.result import AsyncResult
from django.utils import timezone

from example_project.demo.console import Console
from example_project.demo.events import read_events, timelines
from example_project.demo.findings import Findings, UnexpectedError
from example_project.demo.services import Services
from example_project.demo.watch import Watch, lock_of
from example_project.invoicing import bank
from example_project.invoicing.models import Account, SkippedCall, StatementImport
from example_project.invoicing.tasks import import_statement

CALLS = 20
RENEWALS = 3


class Scenario:
    """Runs the steps in order; `findings` holds what was seen."""

    def __init__(self, console: Console, services: Services) -> None:
        self.console = console
        self.services = services
        self.watch = Watch(services)
        self.findings = Findings()
        self.first, self.second, self.third = Account.objects.order_by("pk")[:3]

    def run(self) -> list[str]:
        """Run all steps; return what was not as it must be."""
        first = self.twenty_calls()
        second = self.second_key()
        self.renewals()
        self.answers({self.first: first, self.second: second})
        self.crash()
        runs = {self.first: 1, self.second: 1, self.third: 2}
        expected = {lock_of(account).name: count for account, count in runs.items()}
        self.event_stream(list(expected))
        return list(self.findings.problems(CALLS, RENEWALS, expected))

    def twenty_calls(self) -> AsyncResult:
        pk = self.first.pk
        self.console.heading(f"1. {CALLS} calls of one job at once: import_statement({pk})")
        calls = [import_statement.delay(pk) for _ in range(CALLS)]
        holder = self.watch.holder(self.first)
        running = next(call for call in calls if call.id == holder.owner.task_id)
        values = [self.watch.value(call) for call in calls if call is not running]
        skipped = SkippedCall.objects.filter(task_id__in=[call.id for call in calls])
        self.findings.sent = len(calls)
        self.findings.skipped = min(values.count(None), skipped.count())
        self.console.fact("lock", lock_of(self.first).name)
        self.console.fact("1 runs", holder.owner.describe())
        for (reason, by), count in Counter(skipped.values_list("reason", "holder")).items():
            self.console.fact(f"{count} skipped", f"{reason}: held by {by}")
        self.console.proof("one call runs; the others end at once and say why")
        return running

    def second_key(self) -> AsyncResult:
        pk = self.second.pk
        self.console.heading(f"2. The same job for another account: import_statement({pk})")
        call = import_statement.delay(pk)
        beside, first = self.watch.holder(self.second), self.watch.holder(self.first)
        self.findings.ran_beside = beside.owner.pid != first.owner.pid
        self.console.fact("lock", lock_of(self.second).name)
        self.console.fact("runs", f"{beside.owner.describe()}, beside pid {first.owner.pid}")
        self.console.proof("only calls with the same key exclude each other")
        return call

    def renewals(self) -> None:
        lease = self.watch.holder(self.first)
        self.findings.ttl = lease.ttl
        self.console.heading(f"3. The lock ends after {lease.ttl:g} s, unless it is renewed")
        while self.findings.renewals < RENEWALS or lease.held_for <= lease.ttl:
            before, lease = lease, self.watch.renewal(self.first, lease)
            self.findings.renewals += 1
            rise = (lease.expires_at - before.expires_at).total_seconds()
            end = f"{timezone.localtime(lease.expires_at):%H:%M:%S}"
            self.console.fact(f"after {lease.held_for:.1f} s", f"ends at {end}, {rise:.1f} s later")
        self.findings.held_for = lease.held_for
        self.console.proof("a job may take longer than the TTL: its worker renews the lock")

    def answers(self, calls: dict[Account, AsyncResult]) -> None:
        self.console.heading("4. The bank answers, and the jobs end")
        for account, call in calls.items():
            bank.deliver_statement(account, bank.sample_lines())
            booked = self.watch.value(call)["payments"]
            state = "free" if lock_of(account).inspect() is None else "NOT free"
            self.console.fact(lock_of(account).name, f"{booked} payments booked, lock {state}")
        self.findings.ran = StatementImport.objects.filter(account=self.first).count()
        self.console.proof("the lock is given back when its job ends")

    def crash(self) -> None:
        self.console.heading("5. A worker process is killed (SIGKILL) in the middle of a job")
        call = import_statement.delay(self.third.pk)
        holder = self.watch.holder(self.third)
        if not self.services.owns(holder.owner.pid):
            raise UnexpectedError(f"pid {holder.owner.pid} is not a process of the demo's worker")
        os.kill(holder.owner.pid, signal.SIGKILL)
        self.findings.freed_after = self.watch.free(self.third)
        self.console.fact("killed", holder.owner.describe())
        self.console.fact("Celery reports", self.watch.error(call))
        free = f"{self.findings.freed_after:.2f} s (TTL {holder.ttl:g} s)"
        self.console.fact("lock free after", free)
        again = import_statement.delay(self.third.pk)
        fence = self.watch.holder(self.third).fence
        bank.deliver_statement(self.third, bank.sample_lines())
        self.findings.ran_again = self.watch.value(again) is not None and fence > holder.fence
        self.console.fact("next call", f"runs; its fence is higher: {fence} > {holder.fence}")
        self.console.proof("nobody has to clean up: a dead worker's lock ends by itself")

    def event_stream(self, names: list[str]) -> None:
        self.console.heading("6. What the locks themselves have noted, in the server's order")
        self.findings.timelines = timelines(read_events(), names)
        for name, line in self.findings.timelines.items():
            refused = f" ({line.refused} refused)" if line.refused else ""
            self.console.fact(name, " -> ".join(line.steps) + refused)
        self.console.proof("each lease has ended before the next of its key began")
