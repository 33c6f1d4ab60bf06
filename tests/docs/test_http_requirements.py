"""The table of the HTTP API's requirements names tests that exist."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT, table, words


def test_every_requirement_has_a_test() -> None:
    rows = table("explanation/http-tests.md", "id")
    for row in rows:
        (file,), (name,) = words(row["file in `tests/api`"]), words(row["test"])
        source = (ROOT / "tests/api" / file).read_text()
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), name
    text = (DOCS / "explanation/http-tests.md").read_text()
    named = {int(number) for number in re.findall(r"\bL(\d+)\b", text)}
    assert named == set(range(1, 36))
