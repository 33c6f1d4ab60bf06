"""Many processes and one lock: never two at once, whatever happens to them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
import redis

from django_latch import latch
from tests.chaos.crowd import Crowd, spell
from tests.integration import audit
from tests.integration.programs import Program
from tests.integration.proxy import Fault, proxy
from tests.integration.until import until


@pytest.mark.parametrize("timeout", [0, 5], ids=["trying", "waiting"])
def test_eight_processes_at_once(raw: redis.Redis, tmp_path: Path, timeout: int) -> None:
    with Crowd(tmp_path, 8, timeout=timeout, seconds=spell(10)) as crowd:
        crowd.start()
        runs, refused = crowd.results()
        fences = crowd.fences()
    assert sum(runs) == len(fences) > 200
    assert all(runs), runs
    assert bool(sum(refused)) == (timeout == 0)
    assert fences == sorted(set(fences))
    audit.assert_free(raw, "job")
    left = {audit.key(kind, "job") for kind in "RP"} | {audit.key(k) for k in ("stamp", "events")}
    assert {key for key in raw.keys("*") if ":W:" not in key} == left


def test_processes_that_are_killed_at_any_moment(raw: redis.Redis, tmp_path: Path) -> None:
    """One is killed every 0.3 s, and another comes: what a dead holder costs is its lease."""
    with Crowd(tmp_path, 4, timeout=10, ttl=1, seconds=60, work=0.02) as crowd:
        crowd.start()
        begun, dice = time.monotonic(), random.Random(1)
        living: list[Program] = list(crowd.workers)
        while time.monotonic() < begun + spell(9):
            time.sleep(0.3)
            living.pop(dice.randrange(len(living))).kill()
            fresh = crowd.more()
            fresh.expect("ready")
            fresh.say("go")
            living.append(fresh)
        before = len(crowd.fences())
        until(lambda: len(crowd.fences()) > before + 20, within=9)  # those that live go on
        for worker in living:
            worker.kill()
        fences = crowd.fences()
    assert fences == sorted(set(fences))
    with latch("job", timeout=1 + 3 + 3 + 2):
        pass
    audit.assert_free(raw, "job")


def test_a_network_that_loses_and_repeats(raw: redis.Redis, tmp_path: Path) -> None:
    """Replies are lost, calls arrive twice or late, connections break.

    A copy of a try that was refused, and comes when the lock is free, takes it for nobody, for the
    three seconds of its TTL. How often is luck, so each goes on until it had its runs, and says
    so in time.
    """
    stop = threading.Event()
    with proxy() as network:

        def disturb() -> None:
            dice = random.Random(2)
            while not stop.wait(0.05):
                fault: Fault = dice.choice(["close", "close", "hold"])
                verb = dice.choice(["request", "end", "renew"])
                # Faults that pile up while nobody calls would then break every try of a call.
                if not network.armed(verb):
                    network.arm(verb, fault)
                copies = [call for call in network.passed[-300:] if b"BLPOP" not in call]
                if copies:
                    network.send(dice.choice(copies))
                if dice.random() < 0.1:
                    network.deliver()

        env = {"LATCH_TEST_REDIS_URL": network.url.removesuffix("/0")}
        with Crowd(tmp_path, 0, ttl=3, on_loss="pass", seconds=spell(10), least=5) as crowd:
            crowd.workers += [crowd.more(**env) for _ in range(6)]
            crowd.start()
            troublemaker = threading.Thread(target=disturb)
            troublemaker.start()
            try:
                runs, _ = crowd.results()
                fences = crowd.fences()
            finally:
                stop.set()
                troublemaker.join()
        assert sum(runs) == len(fences)
        assert fences == sorted(set(fences))
        network.deliver()
    with latch("job", timeout=3 + 2):  # a copy that came after all had gone holds nothing for long
        pass
    audit.assert_free(raw, "job")


def test_processes_that_are_paused_past_their_lease(raw: redis.Redis, tmp_path: Path) -> None:
    """What a paused holder does when it wakes up only the fence can stop; the store is right."""
    with Crowd(tmp_path, 4, timeout=5, ttl=0.6, seconds=60, on_loss="pass", check=False) as crowd:
        crowd.start()
        begun, dice = time.monotonic(), random.Random(3)
        while time.monotonic() < begun + 6:
            pid = dice.choice(crowd.workers).pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.1 + dice.random())
            os.kill(pid, signal.SIGCONT)
            held = [r for r in audit.records(raw, "job").values() if r.state == "held"]
            assert len(held) <= 1
        assert len(crowd.fences()) > 50
        assert len(set(crowd.fences())) == len(crowd.fences())
        for worker in crowd.workers:
            worker.kill()
    with latch("job", timeout=0.6 + 3 + 3 + 2):
        pass
    audit.assert_free(raw, "job")


def test_a_server_that_forgets_everything_now_and_then(raw: redis.Redis, tmp_path: Path) -> None:
    with Crowd(tmp_path, 4, timeout=5, ttl=0.6, seconds=6, on_loss="pass", check=False) as crowd:
        crowd.start()
        begun = time.monotonic()
        while time.monotonic() < begun + 5:
            time.sleep(0.25)
            raw.flushdb()
        crowd.results()
        fences = crowd.fences()
    assert len(fences) > 50
    assert len(set(fences)) == len(fences)
    until(lambda: not audit.records(raw, "job"))
    audit.assert_free(raw, "job")
