"""The table of the snapshots' requirements names tests that exist."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT, table, words

#: Numbers of the requirements; some were never given, or given up.
REQUIRED = {*range(1, 21), *range(22, 25), 26, 27, 30, 31, *range(33, 37)}


def test_every_requirement_has_a_test() -> None:
    rows = table("explanation/snapshot-tests.md", "id")
    for row in rows:
        (file,), (name,) = words(row["file in `tests/snapshot`"]), words(row["test"])
        source = (ROOT / "tests/snapshot" / file).read_text()
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), name
    named = " ".join(row["id"] for row in rows)
    assert {int(number) for number in re.findall(r"\bS(\d+)\b", named)} == REQUIRED
    assert (DOCS / "howto/snapshot.md").exists()
