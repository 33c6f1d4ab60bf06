"""The rows of servers and clients; see tests/contract/rows.py."""

from __future__ import annotations

import itertools
from dataclasses import astuple
from pathlib import Path

from tests.contract.rows import FACTORS, FULL, PAIRWISE, Row

Pair = tuple[tuple[str, object], tuple[str, object]]


def pairs(row: Row) -> set[Pair]:
    return set(itertools.combinations(zip(FACTORS, astuple(row), strict=True), 2))


def test_every_two_values_meet_in_a_row() -> None:
    wanted = set().union(*map(pairs, FULL))
    assert len(wanted) == 9 + 6 * 6 + 3 * 4
    assert set().union(*map(pairs, PAIRWISE)) == wanted


def test_the_documentation_names_what_is_tested() -> None:
    page = Path(__file__).parents[2] / "docs/reference/redis.md"
    table = page.read_text().partition("## Tested versions")[2].partition("\n\n`make")[0]
    cells = [line.split("|")[2].strip().lower().split(", ") for line in table.splitlines()[4:]]
    assert cells[0] == list(FACTORS["server"])
    assert cells[1] == list(FACTORS["client"])
    assert [len(cell) for cell in cells[2:]] == [2, 2, 2]


def test_no_row_could_be_left_out() -> None:
    for row in PAIRWISE:
        others = set().union(*(pairs(other) for other in PAIRWISE if other != row))
        assert pairs(row) - others, row
