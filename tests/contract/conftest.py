"""Every promise is tested on every store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.bench import STORES, Bench, bench


@pytest.fixture(params=STORES)
def lock(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with bench(request.param) as made:
        yield made
