"""Eight processes that want one lock all the time, and wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.chaos.crowd import Crowd
from tests.integration import audit

pytestmark = pytest.mark.chaos


def jain(shares: list[int]) -> float:
    """Jain's index: 1 where all have the same share, 1/n where one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


@pytest.mark.parametrize("work", [0, 0.003])
def test_all_are_served_alike_one_at_a_time(raw: redis.Redis, tmp_path: Path, work: float) -> None:
    with Crowd(tmp_path, 8, timeout=20, ttl=20, seconds=10, work=work, rest=0) as crowd:
        crowd.start()
        runs, refused = crowd.results()
        fences = crowd.fences()
    assert refused == [0] * 8
    assert sum(runs) == len(fences) > 200
    assert fences == sorted(set(fences))
    assert jain(runs) > 0.95, runs
    audit.assert_free(raw, "job")
