"""The runs on database servers, where there are none; see tests/databases/rows.py."""

from __future__ import annotations

import socket

import pytest

from tests import services
from tests.databases import rows


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers at a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    kinds = [("A", "LATCH_TEST_A", "postgres"), ("B", "LATCH_TEST_B", "mariadb")]
    found = [rows.Server(name, var, f"{kind}://root@127.0.0.1:{port}") for name, var, kind in kinds]
    monkeypatch.setattr(rows, "SERVERS", found)


@pytest.mark.parametrize(("required", "word"), [(False, "NOT RUN"), (True, "FAILED")])
def test_a_missing_server_is_named(
    monkeypatch: pytest.MonkeyPatch, required: bool, word: str
) -> None:
    monkeypatch.setattr(services, "REQUIRED", required)
    told: list[str] = []
    assert rows.main([], told.append) == int(required)
    lines = told[-1].splitlines()
    assert [line.partition(f": {word}: ")[0] for line in lines if line] == ["A", "B"]
    for line, variable in zip(lines[1:], ("LATCH_TEST_A", "LATCH_TEST_B"), strict=True):
        assert variable in line
