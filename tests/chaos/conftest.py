"""Tests that take long: `pytest -m chaos` runs them, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import _sound, broken_keys  # noqa: F401

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "chaos: takes long; runs only with `-m chaos`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chaos = [item for item in items if HERE in item.path.parents]
    for item in chaos:
        item.add_marker(pytest.mark.chaos)
    if "chaos" not in config.option.markexpr:
        config.hook.pytest_deselected(items=chaos)
        items[:] = [item for item in items if item not in chaos]
