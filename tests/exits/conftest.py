"""Cells of the exits table, and where their times go."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.celery import harness
from tests.exits import app
from tests.exits.cell import Cell
from tests.exits.columns import Workers, forget

#: Environment variable: the JSON file that the measured times are written to.
FILE = "LATCH_EXITS_JSON"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.exits)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the workers said when a test fails; keep what it measured."""
    report = yield
    cell = getattr(item, "funcargs", {}).get("cell")
    if report.failed and cell is not None:
        for worker in cell.seen:
            report.sections.append((f"Output of {worker.name}", "".join(worker.output[-80:])))
    return report


class Times:
    """Collects what the tests measured, in the process that reports."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.rows += [facts for name, facts in report.user_properties if name == "exits"]

    def pytest_sessionfinish(self) -> None:
        if (path := os.environ.get(FILE)) and self.rows:
            document = {"celery": version("celery"), "times": self.rows}
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(document, indent=1), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not in the processes of pytest-xdist
        config.pluginmanager.register(Times(), "latch-exits-times")


@pytest.fixture(autouse=True)
def _empty() -> None:
    """Not emptied: labels are unique, and other processes may be testing beside this one."""


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """The shared workers."""
    yield from Workers.session()


@pytest.fixture
def label() -> Iterator[harness.Label]:
    """Marks and a gate of the test's own."""
    made = harness.Label(uuid4().hex[:12])
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[harness.Label]:
    """Of another call than the one that is watched."""
    made = harness.Label(uuid4().hex[:12])
    yield made
    made.close()


@pytest.fixture
def cell(
    request: pytest.FixtureRequest,
    label: harness.Label,
    workers: Workers,
    record_property: Any,
) -> Iterator[Cell]:
    """The cell that the test's mark names."""
    spec = request.param
    spec.column.require()
    if app.TASKS[spec.at, "plain", app.LONG] is None:
        pytest.skip(f"single_flight takes no at={spec.at!r} yet")
    made = Cell(spec, label, workers, record_property)
    yield made
    forget(spec.column, made.parked)
