"""Workers shared by the tests of Celery."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from uuid import uuid4

import pytest
from celery.result import AsyncResult

from tests.celery import harness


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the worker said when a test fails."""
    report = yield
    worker = getattr(item, "funcargs", {}).get("worker")
    if report.failed and worker is not None:
        report.sections.append(("Output of the worker", "".join(worker.output[-60:])))
    return report


@pytest.fixture(scope="session")
def worker() -> Iterator[harness.Worker]:
    """A worker with four children that many tests share."""
    with harness.worker(concurrency=4) as started:
        yield started


@pytest.fixture(scope="session", autouse=True)
def _results_stay_subscribed() -> Iterator[None]:
    """Celery's destructor of a result sends UNSUBSCRIBE. With redis-py 5 it waits for ever where
    the garbage collector runs it inside a SUBSCRIBE of the same connection."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AsyncResult, "__del__", lambda result: None)
        yield


@pytest.fixture(scope="session")
def flights_worker() -> Iterator[harness.Worker]:
    """A worker that has the tasks of `flights` too."""
    with harness.worker(concurrency=4, app="tests.celery.flights") as started:
        yield started


@pytest.fixture
def label() -> Iterator[harness.Label]:
    """Marks and a gate of the test's own."""
    made = harness.Label(uuid4().hex[:12])
    yield made
    made.close()
