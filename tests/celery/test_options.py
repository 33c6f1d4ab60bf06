"""Options are checked where they are written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_latch import LatchNameError, LatchValueError
from django_latch.celery import SingleFlight, single_flight


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"key": "a:{b}"},
        {"key": lambda b: f"a:{b}"},
        {"at": "run", "ttl": 5, "on_conflict": "raise", "on_lost": "flag", "on_outage": "run"},
        {"ttl": timedelta(minutes=2), "min_hold": timedelta(seconds=1)},
        {"on_conflict": {"run": "retry"}, "max_waits": 0, "on_exhausted": "skip"},
        {"skip_value": ["any", "thing"]},
        {"at": "enqueue", "enqueue_ttl": timedelta(hours=2), "limit": 2},
        {"at": "both", "on_conflict": {"enqueue": "raise", "run": "wait"}, "timeout": 0},
        {"at": "both", "on_conflict": "rerun", "on_outage": {"enqueue": "run", "run": "raise"}},
        {"hold_on_retry": True, "on_lost": "abort", "parent_heartbeat": True},
    ],
)
def test_what_is_allowed(options):
    assert isinstance(single_flight(**options), SingleFlight)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"at": "start"}, "at must be one of 'run', 'enqueue', 'both'"),
        ({"at": "enque"}, "did you mean 'enqueue'"),
        ({"at": "enqueue", "on_conflict": "retry"}, "write one of 'skip', 'raise', 'rerun'"),
        ({"at": "both", "on_conflict": "wait"}, "{'enqueue': 'skip', 'run': 'wait'}"),
        ({"at": "both", "on_conflict": {"enqueue": "wait"}}, r"on_conflict\['enqueue'\] must be"),
        (
            {"on_outage": {"enqueue": "retry"}},
            r"on_outage\['enqueue'\] must be one of 'raise', 'run'",
        ),
        ({"on_outage": {"start": "raise"}}, "on_outage has 'start'"),
        ({"at": "enqueue", "hold_on_retry": True}, "use at='both'"),
        ({"hold_on_retry": 1}, "hold_on_retry must be True or False"),
        ({"limit": 0}, "limit must be a whole number from 1"),
        ({"limit": True}, "limit must be a whole number"),
        ({"enqueue_ttl": 0}, "enqueue_ttl must be between"),
        ({"enqueue_ttl": None}, "enqueue_ttl must be seconds"),
        ({"timeout": -1}, "timeout must be between"),
        ({"on_conflict": "skp"}, "did you mean 'skip'"),
        ({"on_conflict": None}, "on_conflict must be one of"),
        ({"on_conflict": {"run": "skp"}}, "did you mean 'skip'"),
        ({"on_conflict": {"enqueue": "skip"}}, "has the side 'run' only"),
        ({"on_lost": "panic"}, "on_lost must be one of"),
        ({"on_outage": "skip"}, "on_outage must be one of"),
        ({"on_exhausted": "retry"}, "on_exhausted must be one of"),
        ({"ttl": 0}, "ttl must be between"),
        ({"ttl": -1}, "ttl must be between"),
        ({"ttl": float("nan")}, "ttl must be between"),
        ({"ttl": float("inf")}, "ttl must be between"),
        ({"ttl": "60"}, "ttl must be seconds"),
        ({"ttl": True}, "ttl must be seconds"),
        ({"min_hold": -1}, "min_hold must be between"),
        ({"max_waits": -1}, "max_waits must be a whole number"),
        ({"max_waits": 1.5}, "max_waits must be a whole number"),
        ({"max_waits": True}, "max_waits must be a whole number"),
        ({"key": 5}, "key must be a template, a callable or None"),
        ({"ky": "a"}, "did you mean 'key'"),
        ({"expire": 5}, "known are key, at, ttl"),
    ],
)
def test_what_is_refused(options, says):
    with pytest.raises(LatchValueError, match=says):
        single_flight(**options)


@pytest.mark.parametrize(
    "key",
    ["a:{b", "a:{}", "a:{0}", "a:{b.__class__}", "a:{b[0]}", "a:{b!r}", "a:{b:>9}", "", "a\n"],
)
def test_a_bad_template_is_refused(key):
    with pytest.raises(LatchNameError):
        single_flight(key=key)


def test_a_coroutine_function_makes_no_key():
    async def key(b):
        return "a"

    with pytest.raises(LatchValueError, match="not a coroutine"):
        single_flight(key=key)


def test_a_template_that_does_not_fit_the_function_is_refused():
    with pytest.raises(LatchNameError, match=r"'acount' is not a parameter; use one of: account"):

        @single_flight(key="sync:{acount}")
        def sync(account):
            """Never called."""


def test_a_coroutine_function_is_refused():
    with pytest.raises(LatchValueError, match="coroutine function"):

        @single_flight()
        async def sync(account):
            """Never called."""


@pytest.mark.parametrize("target", [5, "text", dict, object()])
def test_what_is_no_function_is_refused(target):
    with pytest.raises(LatchValueError, match="cannot decorate"):
        single_flight()(target)


def test_options_cannot_be_changed():
    flight = SingleFlight(ttl=5)
    with pytest.raises(AttributeError):
        flight.ttl = 6


def test_policies_by_side():
    assert SingleFlight().policies == {"run": "skip"}
    assert SingleFlight(on_conflict="raise").policies == {"run": "raise"}
    assert SingleFlight(on_conflict={"run": "retry"}).policies == {"run": "retry"}
    assert SingleFlight(on_conflict={}).policies == {"run": "skip"}
    both = SingleFlight(at="both", on_conflict={"run": "retry"})
    assert both.policies == {"enqueue": "skip", "run": "retry"}
    assert SingleFlight(at="both", on_conflict="rerun").policies == {
        "enqueue": "rerun",
        "run": "rerun",
    }


def test_outages_by_side():
    assert SingleFlight().outages == {"enqueue": "raise", "run": "retry"}
    assert SingleFlight(on_outage="run").outages == {"enqueue": "run", "run": "run"}
    assert SingleFlight(on_outage={}).outages == {"enqueue": "raise", "run": "retry"}


def test_under_the_task_decorator_nothing_can_decline_to_be_sent():
    with pytest.raises(LatchValueError, match="move @single_flight above it"):

        @single_flight(at="enqueue")
        def sync(account):
            """Never called."""
