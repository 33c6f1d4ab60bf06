"""Crowds for seconds: `make test-chaos`."""

from __future__ import annotations

import json
import random
import time
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from django_latch import LatchTimeout, snapshot
from tests.integration import audit
from tests.integration.programs import program
from tests.integration.until import until
from tests.snapshot.sweeps import LOCK, NAME, Sweep, together

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("permits", [1, 3])
def test_twenty_callers_of_a_slow_compute(permits: int, raw: redis.Redis, sweep: Sweep) -> None:
    """The published algorithm made 20 sweeps of it."""
    sweep.takes = 5
    shared = snapshot(NAME, fresh_for=60, wait=3, on_busy="compute", permits=permits)
    begun = time.monotonic()
    got = together(20, shared.get, sweep)
    assert time.monotonic() - begun < 3 + 5 + 2
    assert sweep.runs <= 1 + permits
    assert sum(isinstance(one, LatchTimeout) for one in got) == 20 - sweep.runs
    audit.assert_free(raw, LOCK)


CALLERS = """
import json, threading
from django_latch import LatchTimeout, current_lease, snapshot

def compute():
    fence, began = current_lease().fence, time.clock_gettime(time.CLOCK_MONOTONIC)
    time.sleep(0.15)
    ended = time.clock_gettime(time.CLOCK_MONOTONIC)
    with open(os.environ["LOG"], "a") as log:
        log.write(json.dumps([fence, began, ended]) + "\\n")
    return fence

shared = snapshot("health", fresh_for=0.1, keep_for=0.2, ttl=0.6, wait=5)

def call():
    last = 0
    while True:
        report = shared.report(compute)
        assert report.value >= last, (report, last)
        last = report.value

for _ in range(10):
    threading.Thread(target=call, daemon=True).start()
say("ready")
hear()
"""


def test_refreshers_that_are_killed_again_and_again(raw: redis.Redis, tmp_path: Path) -> None:
    """Every reader sees fences that only grow, and no two computes of an election overlap."""
    log, dice = tmp_path / "log", random.Random(7)
    log.touch()
    programs = [program(CALLERS, LOG=str(log)) for _ in range(4)]
    running = [each.__enter__() for each in programs]
    try:
        for each in running:
            each.expect("ready")
        for _ in range(8):
            time.sleep(dice.uniform(0.3, 0.9))
            victim = dice.randrange(len(running))
            running[victim].kill()
            assert running[victim].errors == []
            running[victim].close()
            programs.append(program(CALLERS, LOG=str(log)))
            running[victim] = programs[-1].__enter__()
            running[victim].expect("ready")
    finally:
        for each in running:
            each.kill()
            assert each.errors == []
            each.close()
    runs = sorted(json.loads(line) for line in log.read_text().splitlines())
    assert len(runs) > 10
    for (_, _, ended), (_, began, _) in pairwise(runs):
        assert ended <= began + 0.01, "two computed at once"
    until(lambda: all(r.exp < audit.now(raw) for r in audit.records(raw, LOCK).values()))
    last = snapshot(NAME, fresh_for=0.1)
    # What the last of them made may be fresh for another moment.
    until(lambda: last.report(lambda: 1).outcome in ("miss", "takeover"))
