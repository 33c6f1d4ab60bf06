"""Calls without a message: direct, ``apply()`` and eager ones are guarded too."""

from __future__ import annotations

import logging

import pytest

from django_latch import LatchBusy, LatchUnavailable, current_lease, latch
from django_latch.celery import single_flight
from django_latch.signals import task_skipped
from tests.celery.app import app

SKIP_TO = {"skipped": True}


@single_flight(key="direct:{x}", skip_value=SKIP_TO)
@app.task(bind=True)
def skips(self, x, call=None):
    return call() if call else current_lease().name


@single_flight(key="direct:{x}", on_conflict="raise")
@app.task
def raises(x):
    return current_lease().name


@single_flight(key="direct:{x}", on_conflict="retry", on_exhausted="skip")
@app.task(bind=True)
def retries(self, x):
    if self.request.retries < 2:
        raise self.retry()
    return self.request.retries, current_lease().name


@pytest.fixture
def eager():
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


CALLS = {
    "direct": lambda task, *args: task(*args),
    "apply": lambda task, *args: task.apply(args, throw=True).get(),
    "eager": lambda task, *args: task.delay(*args).get(),
}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("how", CALLS)
class TestConflicts:
    def test_skip(self, how, caplog):
        caplog.set_level(logging.INFO, "django_latch")
        seen = []

        def receiver(**payload):
            seen.append(payload)

        task_skipped.connect(receiver)
        try:
            with latch("direct:1", owner="the test", timeout=0):
                assert CALLS[how](skips, 1) == SKIP_TO
        finally:
            task_skipped.disconnect(receiver)
        assert CALLS[how](skips, 1) == "direct:1"
        (payload,) = seen
        assert (payload["task"], payload["key"]) == (skips.name, "direct:1")
        assert payload["reason"] == "busy"
        assert payload["holder"]["label"] == "the test"
        (record,) = [r for r in caplog.records if "skipped" in r.message]
        assert record.levelno == logging.INFO
        assert f"{skips.name}: skipped, direct:1 is held by the test on " in record.message

    @pytest.mark.parametrize("task", [raises, retries])
    def test_raise_and_retry_both_raise(self, how, task):
        with latch("direct:1", timeout=0), pytest.raises(LatchBusy):
            CALLS[how](task, 1)


@pytest.mark.parametrize("how", ["direct", "apply"])
def test_the_lock_is_free_after_an_error(how):
    def fail():
        raise KeyError("own")

    with pytest.raises(KeyError):
        CALLS[how](skips, 1, fail)
    assert latch("direct:1").inspect() is None


@pytest.mark.parametrize("how", ["direct", "apply"])
def test_an_error_of_ours_in_the_task_is_the_task_s(how):
    """It must not be taken for a refusal of the task's own lock, and skipped."""

    def busy():
        with latch("other", timeout=0):
            return latch("other", timeout=0).acquire()

    with pytest.raises(LatchBusy) as caught:
        CALLS[how](skips, 1, busy)
    assert caught.value.name == "other"


def test_eager_retries_never_meet_their_own_lock():
    assert retries.apply((1,)).get() == (2, "direct:1")


@pytest.mark.usefixtures("eager")
def test_a_call_without_the_lock():
    with latch("direct:1", timeout=0):
        assert skips.apply_async((1,)).get() == SKIP_TO
        assert skips.apply_async((1,), single_flight=False).get() == "direct:1"


def test_the_switch_must_be_a_bool():
    with pytest.raises(TypeError, match="single_flight must be True or False"):
        skips.apply_async((1,), single_flight="no")


def test_an_outage_raises(settings):
    settings.CACHES = {
        **settings.CACHES,
        "locks": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        },
    }
    with pytest.raises(LatchUnavailable):
        raises(1)


def test_min_hold_keeps_the_lock_after_a_short_run():
    @single_flight(key="brief:{x}", min_hold=0.5, on_conflict="raise")
    @app.task(name="tests.brief")
    def brief(x):
        return current_lease().name

    assert brief(1) == "brief:1"
    with pytest.raises(LatchBusy):
        brief(1)
    with latch("brief:1", timeout=5) as lease:
        assert lease.remaining() > 0


def test_a_tenant_s_jobs_are_its_own(settings):
    settings.DJANGO_LATCH = {**settings.DJANGO_LATCH, "NAMESPACE": "tests.celery.tenants.current"}
    from tests.celery import tenants

    with tenants.acting("a:b"):
        assert skips.single_flight.key(1) == "a%3Ab:direct:1"
        assert skips(1) == "a%3Ab:direct:1"
        with latch("direct:1", timeout=0):
            assert skips(1) == SKIP_TO
            with tenants.acting("c"):
                assert skips(1) == "c:direct:1"
