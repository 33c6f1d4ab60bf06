"""System checks: options and settings of Celery that fight each other. None asks a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from celery import _state
from django.core.checks import CheckMessage, Warning
from django.core.exceptions import ImproperlyConfigured

from django_latch.celery.guarded import guarded_of
from django_latch.conf import conf

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight

#: A shorter lease ends in any pause of a process: garbage, swap, a slow network.
SHORT: Final = 5.0
#: Brokers that deliver an unacknowledged message again after a time-out, and that of Celery's own
#: default in seconds.
REDELIVERING: Final = ("redis", "rediss", "sentinel", "sqs")
VISIBILITY: Final = 3600.0


def check_tasks() -> list[CheckMessage]:
    """W010 to W016, for each task of the current Celery app that has a single flight."""
    app = _state._tls.current_app or _state.default_app
    if app is None:
        return []  # asking for the current one would make one
    try:
        import_tasks(app)
    except ImportError as error:
        return [
            Warning(
                f"The tasks of the Celery app {app.main!r} cannot be imported: {error}",
                hint="A worker will fail in the same way.",
                id="django_latch.W016",
            )
        ]
    found: list[CheckMessage] = []
    for _, task in sorted(app.tasks.items()):
        guarded = guarded_of(task)
        if guarded is not None:
            try:
                found += _warnings(task, guarded.flight)
            except ImproperlyConfigured:
                return []  # E001 says it
    return found


def import_tasks(app: Any) -> None:
    """Import what a worker imports, without its signal, which would run Django's checks again.

    Parameters:
        app: a Celery app.

    Raises:
        ImportError: a module cannot be imported.
    """
    app.autodiscover_tasks(force=True)
    for module in (*app.conf.imports, *app.conf.include):
        app.loader.import_task_module(module)


def _warnings(task: Any, flight: SingleFlight) -> Iterator[CheckMessage]:
    ttl = flight.lease_seconds
    yield from _redelivery(task, flight, ttl)
    limit = task.time_limit or task.app.conf.task_time_limit
    if limit and ttl > limit:
        yield Warning(
            f"{task.name}: the lock of a dead run lasts {ttl:g} s, and no run lasts longer than "
            f"its time limit of {limit:g} s.",
            hint="Shorten ttl: it is renewed as long as the run lives.",
            id="django_latch.W012",
        )
    if flight.at != "run" and task.app.conf.task_always_eager:
        yield Warning(
            f"{task.name}: at={flight.at!r} locks nothing when a call is sent, for "
            "task_always_eager runs it at once.",
            hint="Test with a worker what depends on the queue.",
            id="django_latch.W013",
        )
    pool = str(task.app.conf.worker_pool or "prefork")
    needs = [
        text
        for wanted, text in (
            (flight.on_lost == "abort", "on_lost='abort'"),
            (flight.parent_heartbeat, "parent_heartbeat=True"),
        )
        if wanted
    ]
    if needs and pool != "prefork":
        yield Warning(
            f"{task.name}: {' and '.join(needs)} has no effect in a {pool} pool.",
            hint="Only the prefork pool runs tasks in processes of their own.",
            id="django_latch.W014",
        )
    if flight.at != "run" and flight.queue_seconds > conf.max_ttl:
        yield Warning(
            f"{task.name}: enqueue_ttl is {flight.queue_seconds:g} s, and no lock outlives "
            f"DJANGO_LATCH['MAX_TTL'], {conf.max_ttl:g} s.",
            hint="Shorten enqueue_ttl, or raise MAX_TTL.",
            id="django_latch.W015",
        )


def _redelivery(task: Any, flight: SingleFlight, ttl: float) -> Iterator[CheckMessage]:
    settings = task.app.conf
    if task.acks_late and ttl < SHORT:
        yield Warning(
            f"{task.name}: its lock ends after {ttl:g} s without a renewal, and with acks_late a "
            "copy of the job may be waiting for that.",
            hint=f"A ttl of {SHORT:g} s or more outlasts the pauses of a living process.",
            id="django_latch.W010",
        )
    scheme = str(settings.broker_url or "").partition(":")[0]
    if scheme not in REDELIVERING:
        return
    again = (settings.broker_transport_options or {}).get("visibility_timeout") or VISIBILITY
    times = [("ttl", ttl), ("default_retry_delay", float(task.default_retry_delay or 0))]
    for name, seconds in times:
        if seconds > again:
            yield Warning(
                f"{task.name}: {name} is {seconds:g} s, and the broker delivers a job again that "
                f"nobody has finished after {again:g} s.",
                hint="Raise visibility_timeout in broker_transport_options above it, and above "
                "the longest run and ETA.",
                id="django_latch.W011",
            )
