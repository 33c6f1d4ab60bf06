"""The scenario: twenty calls of one job, a second job beside it, a renewed lock, a crash."""

from __future__ import annotations

import os
import signal
from collections import Counter

from django.utils import timezone

from example_project.demo.console import Console
from example_project.demo.events import read_events, timelines
from example_project.demo.findings import Findings, UnexpectedError
from example_project.demo.services import Services
from example_project.demo.watch import Watch, lock_of
from example_project.invoicing import bank
from example_project.invoicing.models import Account, StatementImport
from example_project.invoicing.tasks import import_statement

CALLS = 20
RENEWALS = 4


def send(account: Account) -> str:
    """Send a call of the import; return its id."""
    return str(import_statement.delay(account.pk).id)


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

    def twenty_calls(self) -> str:
        pk = self.first.pk
        self.console.heading(f"1. {CALLS} calls of one job at once: import_statement({pk})")
        calls = [send(self.first) for _ in range(CALLS)]
        holder = self.watch.holder(self.first)
        # The job waits for its bank until all others have come and gone.
        skipped = self.watch.skipped(calls, CALLS - 1)
        self.findings.sent, self.findings.skipped = len(calls), skipped.count()
        self.console.fact("lock", lock_of(self.first).name)
        self.console.fact("1 runs", holder.owner.describe())
        for (reason, by), count in Counter(skipped.values_list("reason", "holder")).items():
            self.console.fact(f"{count} skipped", f"{reason}: held by {by}")
        self.console.proof("one call runs; the others end at once and say why")
        return holder.owner.task_id

    def second_key(self) -> str:
        pk = self.second.pk
        self.console.heading(f"2. The same job for another account: import_statement({pk})")
        call = send(self.second)
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
        while self.findings.renewals < RENEWALS:
            before, lease = lease, self.watch.renewal(self.first, lease)
            self.findings.renewals += 1
            rise = (lease.expires_at - before.expires_at).total_seconds()
            end = f"{timezone.localtime(lease.expires_at):%H:%M:%S}"
            self.console.fact(f"after {lease.held_for:.1f} s", f"ends at {end}, {rise:.1f} s later")
        self.findings.held_for = lease.held_for
        self.console.proof("a job may take longer than the TTL: its worker renews the lock")

    def answers(self, calls: dict[Account, str]) -> None:
        self.console.heading("4. The bank answers, and the jobs end")
        for account, call in calls.items():
            bank.deliver_statement(account, bank.sample_lines())
            payments = self.watch.finished(call).payments_count
            self.watch.free(account)
            self.console.fact(lock_of(account).name, f"{payments} payments booked, lock free")
        self.findings.ran = StatementImport.objects.filter(account=self.first).count()
        self.console.proof("the lock is given back when its job ends")

    def crash(self) -> None:
        self.console.heading("5. A worker process is killed (SIGKILL) in the middle of a job")
        send(self.third)
        holder = self.watch.holder(self.third)
        if not self.services.owns(holder.owner.pid):
            raise UnexpectedError(f"pid {holder.owner.pid} is not a process of the demo's worker")
        os.kill(holder.owner.pid, signal.SIGKILL)
        self.findings.freed_after = self.watch.free(self.third)
        self.console.fact("killed", holder.owner.describe())
        free = f"{self.findings.freed_after:.2f} s (TTL {holder.ttl:g} s)"
        self.console.fact("lock free after", free)
        again = send(self.third)
        fence = self.watch.holder(self.third).fence
        bank.deliver_statement(self.third, bank.sample_lines())
        self.findings.ran_again = self.watch.finished(again).fence == fence > holder.fence
        self.watch.free(self.third)
        self.console.fact("next call", f"runs; its fence is higher: {fence} > {holder.fence}")
        self.console.proof("nobody has to clean up: a dead worker's lock ends within its TTL")

    def event_stream(self, names: list[str]) -> None:
        self.console.heading("6. What the locks themselves have noted, in the server's order")
        self.findings.timelines = timelines(read_events(), names)
        for name, line in self.findings.timelines.items():
            refused = f" ({line.refused} refused)" if line.refused else ""
            self.console.fact(name, " -> ".join(line.steps) + refused)
        self.console.proof("each lease has ended before the next of its key began")
