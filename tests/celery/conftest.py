"""Workers shared by the tests of Celery."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from uuid import uuid4

import pytest

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


@pytest.fixture
def label() -> Iterator[harness.Label]:
    """Marks and a gate of the test's own."""
    made = harness.Label(uuid4().hex[:12])
    yield made
    made.close()
