"""System checks of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pytest
from celery import Celery, _state, shared_task
from django.core.checks import run_checks

from django_latch.celery import single_flight
from django_latch.celery.checks import check_tasks


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """An app of the test's own, current for its time."""
    monkeypatch.setattr(_state, "_apps", WeakSet())
    monkeypatch.setattr(_state, "_on_app_finalizers", set(_state._on_app_finalizers))
    monkeypatch.setattr(_state._tls, "current_app", None)
    with Celery("checked", broker="redis://") as made:
        yield made


def task(app: Celery, options: dict[str, Any], **more: Any) -> Any:
    @single_flight(**options)
    @app.task(name="checked.task", **more)
    def checked() -> None:
        """Never runs."""

    return checked


@pytest.mark.parametrize(
    ("options", "more", "settings", "expected"),
    [
        ({}, {}, {}, []),
        ({"ttl": 60}, {"acks_late": True}, {}, []),
        ({"ttl": 2}, {"acks_late": True}, {}, ["W010"]),
        ({"ttl": 2}, {}, {}, []),
        ({"ttl": 4000}, {}, {}, ["W011"]),
        ({"ttl": 4000}, {}, {"broker_url": "amqp://"}, []),
        ({"ttl": 4000}, {}, {"broker_transport_options": {"visibility_timeout": 9000}}, []),
        ({}, {"default_retry_delay": 7200}, {}, ["W011"]),
        ({"ttl": 60}, {"time_limit": 30}, {}, ["W012"]),
        ({"ttl": 60}, {}, {"task_time_limit": 30}, ["W012"]),
        ({"ttl": 60}, {"time_limit": 90}, {}, []),
        ({"at": "enqueue"}, {}, {"task_always_eager": True}, ["W013"]),
        ({}, {}, {"task_always_eager": True}, []),
        ({"on_lost": "abort"}, {}, {"worker_pool": "gevent"}, ["W014"]),
        ({"parent_heartbeat": True}, {}, {"worker_pool": "threads"}, ["W014"]),
        ({"on_lost": "abort"}, {}, {"worker_pool": "prefork"}, []),
        ({"at": "both", "enqueue_ttl": 100_000}, {}, {}, ["W015"]),
        ({"enqueue_ttl": 100_000}, {}, {}, []),
    ],
)
def test_findings(app: Celery, options, more, settings, expected):
    app.conf.update(settings)
    task(app, options, **more)
    # Tasks of other test modules may be there too.
    found = [message for message in check_tasks() if message.msg.startswith("checked.task: ")]
    assert [message.id for message in found] == [f"django_latch.{number}" for number in expected]
    assert all(message.hint for message in found)


def test_modules_that_cannot_be_imported(app: Celery):
    app.conf.imports = ["no.such.module"]
    (found,) = check_tasks()
    assert found.id == "django_latch.W016"
    assert "No module named 'no'" in found.msg


def test_they_are_among_django_s_checks(app: Celery):
    task(app, {"ttl": 2}, acks_late=True)
    assert "django_latch.W010" in [message.id for message in run_checks()]


def test_a_faulty_setting_is_said_once(app: Celery, settings):
    task(app, {"ttl": 2}, acks_late=True)
    settings.DJANGO_LATCH = {"TTL": -1}
    assert check_tasks() == []


def test_a_shared_task_of_any_app(app: Celery):
    @single_flight(ttl=1)
    @shared_task(name="checked.shared", acks_late=True)
    def shared() -> None:
        """Never runs."""

    assert "checked.shared" in " ".join(message.msg for message in check_tasks())
