"""The view helper: pending and outages as HTTP says them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from django_latch import Pending, snapshot, snapshot_view
from tests.integration.aliases import locks_at
from tests.snapshot.slow import slow
from tests.snapshot.sweeps import NAME, Sweep, call

REQUEST = RequestFactory().get("/health/")
NOWHERE = "redis://127.0.0.1:1/0"


def body(response: HttpResponse) -> Any:
    return json.loads(response.content)


def test_s15_a_value_is_json(sweep: Sweep) -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME, sweep)

    response = view(REQUEST)
    assert (response.status_code, body(response)) == (200, 1)
    assert "Age" not in response


def test_s15_a_report_has_an_age(sweep: Sweep) -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME).report(sweep)

    response = view(REQUEST)
    assert (body(response), response["Age"]) == (1, "0")


def test_s15_pending_is_503_with_retry_after(sweep: Sweep) -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME, sweep, wait=0.05, on_busy="pending")

    with sweep.held():
        first = call(snapshot(NAME).get, sweep)
        sweep.await_begin()
        response = view(REQUEST)
    assert (response.status_code, body(response)) == (503, {"status": "PENDING"})
    assert response["Retry-After"] == "1"
    assert first.result(10) == 1
    assert isinstance(Pending(NAME), Pending)


@pytest.mark.parametrize("on_busy", ["stale", "raise", "compute"])
def test_s15_contention_never_becomes_an_outage(on_busy: str, sweep: Sweep) -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME).replace(wait=0.1, on_busy=on_busy).get(sweep)

    with sweep.held():
        first = call(snapshot(NAME).get, sweep)
        sweep.await_begin()
        if on_busy == "compute":  # somebody else has the permit
            call(snapshot(NAME, wait=0.05, on_busy="compute").get, sweep)
            sweep.await_begin()
        response = view(REQUEST)
        with slow(0.5) as way, locks_at(way.url):
            late = view(REQUEST)
    assert (response.status_code, body(response)) == (503, {"status": "PENDING"})
    assert (late.status_code, body(late)) == (503, {"status": "PENDING"})
    assert first.result(10) == 1


def test_s15_an_outage_is_503_redis_down(sweep: Sweep) -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME, sweep)

    @snapshot_view
    async def aview(request: object) -> object:
        return await snapshot(NAME).aget(sweep.a)

    with locks_at(NOWHERE):
        responses = [view(REQUEST), asyncio.run(aview(REQUEST))]
    for response in responses:
        said = body(response)
        assert response.status_code == 503
        assert said.keys() == {"status", "error", "checkedAt"}
        assert (said["status"], said["error"]) == ("REDIS_DOWN", "connection")
        age = datetime.now(UTC) - datetime.fromisoformat(said["checkedAt"])
        assert timedelta(0) <= age < timedelta(seconds=10)
        assert response["Retry-After"] == "1"


def test_s15_an_error_of_the_compute_is_none_of_these() -> None:
    @snapshot_view
    def view(request: object) -> object:
        return snapshot(NAME, lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        view(REQUEST)


def test_a_response_stays_one() -> None:
    @snapshot_view
    def view(request: object) -> object:
        return HttpResponse("as it is", status=418)

    assert view(REQUEST).status_code == 418
