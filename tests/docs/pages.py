"""Reads the documentation's pages: their tables, code blocks and links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def page_name(page: Path) -> str:
    """Path below the root, as the id of a test."""
    return page.relative_to(ROOT).as_posix()


def table(page: str, first_heading: str) -> list[dict[str, str]]:
    """Rows of the one table of `page` whose first column has this heading, without backticks."""
    found = [rows for rows in _tables(DOCS / page) if next(iter(rows[0])) == first_heading]
    if len(found) != 1:
        raise AssertionError(f"{page} has {len(found)} tables that begin with {first_heading!r}")
    return found[0]


def _tables(page: Path) -> list[list[dict[str, str]]]:
    tables = []
    for block in re.findall(r"(?:^\|.*\n)+", page.read_text(), flags=re.MULTILINE):
        heading, _, *lines = block.splitlines()
        names = _cells(heading)
        tables.append([dict(zip(names, _cells(line), strict=True)) for line in lines])
    return tables


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def words(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def code_blocks(page: Path, language: str) -> list[str]:
    """Source of the fenced blocks in this language."""
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, page.read_text(), flags=re.MULTILINE | re.DOTALL)
