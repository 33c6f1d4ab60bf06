"""The benchmarks judge fairly: by the goal, its margin, and whether the machine was busy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest

from benchmarks import __main__ as program
from benchmarks.figures import Goal, Table

QUIET = [1.0, 1.1, 1.0, 1.2, 1.1]
BUSY = [1.0, 5.0, 1.0, 6.0, 1.1]


def table(value: float, raw: Sequence[float] = QUIET) -> Table:
    return Table("waits", ["median"], [["ours", "1 ms"]], [Goal("wait", value, 10, "ms")], raw)


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (Goal("wait", 10, 10, "ms"), "reached: wait 10.00 ms; goal at most 10 ms"),
        (Goal("wait", 15, 10), "near: wait 15.00; goal at most 10"),
        (Goal("wait", 15.1, 10), "MISSED: wait 15.10; goal at most 10"),
        (Goal("rate", 0.7, 0.7, least=True), "reached: rate 0.70; goal at least 0.7"),
        (Goal("rate", 0.35, 0.7, least=True), "near: rate 0.35; goal at least 0.7"),
        (Goal("rate", 0.34, 0.7, least=True), "MISSED: rate 0.34; goal at least 0.7"),
    ],
)
def test_a_goal_says_how_it_stands(goal: Goal, verdict: str) -> None:
    assert str(goal) == verdict
    assert goal.missed is verdict.startswith("MISSED")


def test_a_table_stands_in_columns() -> None:
    assert str(table(1)).splitlines() == [
        "waits",
        "         median",
        "  ours     1 ms",
        "  reached: wait 1.00 ms; goal at most 10 ms",
    ]


def test_a_machine_is_busy_where_raw_rounds_scatter() -> None:
    assert not table(1, QUIET).busy
    assert table(1, BUSY).busy


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Table]]:
    """What a scenario finds, one table for each time it is measured."""
    tables: list[Table] = []
    module = ModuleType("benchmarks.made_up")
    module.measure = lambda effort: tables.pop(0)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.made_up", module)
    yield tables
    assert tables == [], "measured less often than expected"


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        ([table(1)], True),
        ([table(99), table(1)], True),
        ([table(99), table(99), table(99)], False),
        ([table(99), table(99, BUSY), table(99)], True),
        ([table(1, BUSY)], True),
    ],
)
def test_a_scenario_fails_only_on_a_quiet_machine_and_each_time(
    scenario: list[Table], found: list[Table], passed: bool
) -> None:
    scenario += found
    assert program.run("made_up", 1.0) is passed
