"""What a reader gets, and what that costs."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from math import inf, nan
from typing import Any

import pytest
import redis
from django.core.cache import caches
from django.test import override_settings

from django_latch import FreshUntil, LatchValueError, snapshot
from django_latch.snapshots.description import store_name
from django_latch.store.connections import store
from tests import servers
from tests.integration import audit
from tests.integration.aliases import locks_at
from tests.snapshot.sweeps import LOCK, NAME, Sweep, call, stale


def commands(raw: redis.Redis) -> dict[str, int]:
    """How often each command was run, those of this connection aside."""
    stats = raw.info("commandstats")
    ours = ("info", "config|resetstat", "hget", "hset")
    found = {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in stats.items()}
    return {name: calls for name, calls in found.items() if name not in ours}


def test_s1_a_fresh_hit_is_one_round_trip_and_touches_no_lock(
    raw: redis.Redis, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = snapshot(NAME, fresh_for=60)
    assert shared.get(sweep) == 1
    sent: list[int] = []
    pool = store()._pool
    borrow = pool.borrow
    monkeypatch.setattr(pool, "borrow", lambda *args: sent.append(1) or borrow(*args))
    raw.config_resetstat()
    assert shared.get(sweep) == 1
    assert len(sent) == 1
    assert commands(raw) == {"time": 1, "hmget": 1}
    assert sweep.runs == 1
    assert elected_never(raw)


def elected_never(raw: redis.Redis) -> bool:
    return audit.records(raw, LOCK) == {} and audit.listed(raw, LOCK) == []


def test_s2_nobody_is_elected_who_is_not_needed(
    raw: redis.Redis, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look and the election another one publishes: the script looks again."""
    shared, at = snapshot(NAME, fresh_for=60), store()
    glance = at.glance

    def late(step: Any) -> Any:
        seen = glance(step)
        monkeypatch.setattr(at, "glance", glance)
        assert snapshot(NAME, fresh_for=60).get(lambda: "theirs") == "theirs"
        return seen

    monkeypatch.setattr(at, "glance", late)
    report = shared.report(sweep)
    assert (report.value, report.outcome) == ("theirs", "hit")
    assert sweep.runs == 0
    assert audit.kinds(raw, LOCK).count("acquired") == 1


def test_s2_s4_the_five_answers(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60, wait=0.05)
    with sweep.held():
        first = call(shared.report, sweep)  # miss, elected
        sweep.await_begin()
        with pytest.raises(Exception, match="another caller computes it"):
            shared.get(sweep)  # miss, busy
    assert first.result(10).outcome == "miss"
    assert shared.report(sweep).outcome == "hit"
    stale(shared, None, raw)
    with sweep.held():
        second = call(shared.report, sweep)  # stale, elected
        sweep.await_begin()
        report = shared.report(sweep)  # stale, busy
        assert (report.outcome, report.state, report.value) == ("stale", "stale", 1)
        assert report.refreshing
        assert report.waited < 1
    assert second.result(10).value == 2
    assert sweep.runs == 2


def test_s4_a_stale_value_is_marked_with_its_age(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.1, keep_for=60)
    shared.get(sweep)
    time.sleep(0.3)
    with sweep.held():
        refresh = call(shared.get, sweep)
        sweep.await_begin()
        report = shared.report(sweep)
        assert report.state == "stale"
        assert 0.3 <= report.age < 3
        assert report.fresh_for == pytest.approx(0.1 - report.age, abs=0.002)
    assert refresh.result(10) == 2


VALUES = [None, 0, False, "", [], {}, b"", 7, True, 1.5, "x", b"\x00\xff"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_s20_every_value_is_a_value(value: object, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60)
    assert shared.get(lambda: value) == value
    again = shared.get(sweep)
    assert again == value
    assert type(again) is type(value)
    assert sweep.runs == 0


def test_s23_age_is_judged_by_the_servers_clock(raw: redis.Redis, sweep: Sweep) -> None:
    """No client's clock is asked: what counts is TIME, beside what the script has written."""
    shared = snapshot(NAME, fresh_for=60)
    shared.get(sweep)
    made = int(raw.hget(audit.key("S", LOCK), "m").split("|")[1])
    before = audit.now(raw) - made
    age = shared.report(sweep).age * 1000
    after = audit.now(raw) - made
    assert before - 1 <= age <= after + 1


@pytest.mark.parametrize("skew", [-3600, -0.005, 0.005, 3600])
def test_s23_the_clock_of_a_process_changes_nothing(
    skew: float, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = snapshot(NAME, fresh_for=60)
    shared.get(sweep)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + skew)
    report = shared.report(sweep)
    assert (report.state, sweep.runs) == ("hit", 1)
    assert 0 <= report.age < 3


def test_a_server_clock_that_was_set_back_leaves_a_stale_value(
    raw: redis.Redis, sweep: Sweep
) -> None:
    shared = snapshot(NAME, fresh_for=60)
    shared.get(sweep)
    facts = raw.hget(audit.key("S", LOCK), "m").split("|")
    ahead = 3_600_000
    facts[1:4] = [str(int(at) + ahead) for at in facts[1:4]]
    raw.hset(audit.key("S", LOCK), "m", "|".join(facts))
    assert shared.peek().state == "stale"
    assert shared.peek().age == 0
    assert shared.get(sweep) == 2


def test_s24_a_value_carries_a_deadline(sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60)
    assert shared.get(lambda: FreshUntil("brief", 0.2)) == "brief"
    assert 0 < shared.peek().fresh_for <= 0.2
    time.sleep(0.25)
    assert shared.peek().state == "stale"
    shared.invalidate()
    soon = datetime.now(UTC) + timedelta(seconds=20)
    assert shared.get(lambda: FreshUntil("dated", soon)) == "dated"
    assert 10 < shared.peek().fresh_for <= 21
    shared.invalidate()
    past = datetime.now(UTC) - timedelta(seconds=20)
    assert shared.get(lambda: FreshUntil("past", past)) == "past"
    assert shared.peek().state == "stale"
    shared.invalidate()
    assert shared.get(lambda: FreshUntil("long", timedelta(days=9))) == "long"
    assert 50 < shared.peek().fresh_for <= 60, "a deadline only shortens"


@pytest.mark.parametrize(
    ("deadline", "least", "most"),
    [
        (20, 19, 20),
        (timedelta(days=9), 60, 60),
        (inf, 60, 60),
        (-5, 0, 0.01),
        (lambda: datetime.now(UTC) + timedelta(seconds=40), 1, 40),
        (lambda: datetime.now(UTC) - timedelta(seconds=40), 0, 0),
        (datetime.max.replace(tzinfo=UTC), 60, 60),
        (datetime.min.replace(tzinfo=UTC), 0, 0),
    ],
)
def test_s24_a_report_knows_the_deadline(deadline: Any, least: float, most: float) -> None:
    if callable(deadline):  # from now, not from when the tests were collected
        deadline = deadline()
    report = snapshot(NAME, fresh_for=60).report(lambda: FreshUntil("x", deadline))
    assert least <= report.fresh_for <= most
    assert report.fence, "it was published"
    assert snapshot(NAME, fresh_for=60).peek().fresh_for <= most + 0.1


@pytest.mark.parametrize(
    "deadline",
    ["tomorrow", datetime(2027, 1, 1), None, True, nan],  # noqa: DTZ001
)
def test_s24_a_deadline_that_is_none(deadline: Any) -> None:
    with pytest.raises(LatchValueError, match="deadline"):
        snapshot(NAME).get(lambda: FreshUntil("x", deadline))


@pytest.mark.parametrize("junk", [b"\x80junk", b"", b"\xff\xfe"], ids=repr)
def test_s26_unreadable_bytes_are_a_miss(
    junk: bytes, raw: redis.Redis, sweep: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    shared = snapshot(NAME, fresh_for=60)
    shared.get(sweep)
    raw.hset(audit.key("S", LOCK), "v:", junk)
    report = shared.peek()
    assert (report.state, report.value, report.fence, report.age) == ("miss", None, 0, 0)
    assert shared.get(sweep) == 2
    assert "cannot be read" in caplog.text
    assert shared.get(sweep) == 2
    assert sweep.runs == 2


def test_s26_facts_that_cannot_be_read_are_a_miss(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60)
    shared.get(sweep)
    raw.hset(audit.key("S", LOCK), "m", "what|is|this")
    assert shared.get(sweep) == 2


def test_s27_keys_honour_prefix_and_version(raw: redis.Redis, broken_keys: None) -> None:
    url = servers.url()
    with locks_at(url, KEY_PREFIX="shop", VERSION=7):
        assert snapshot(NAME, lambda: "seven") == "seven"
        key = f"shop:latch:1:{{00}}:S:{store_name(NAME, 7)}"
        assert raw.exists(key)
        assert raw.keys("*S:*") == [key]
    with locks_at(url, KEY_PREFIX="shop", VERSION=8):
        assert snapshot(NAME, lambda: "eight") == "eight"
    with locks_at(url, KEY_PREFIX="shop", VERSION=7):
        assert snapshot(NAME, lambda: "never") == "seven"


def test_s27_the_serializer_of_the_alias_is_used(raw: redis.Redis) -> None:
    options = {
        "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
        "COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
    }
    value = {"checks": ["ok"] * 50}
    with locks_at(servers.url(), OPTIONS=options):
        assert snapshot(NAME, lambda: value) == value
        assert snapshot(NAME, lambda: "never") == value
        client = redis.Redis.from_url(servers.url())
        stored = client.hget(audit.key("S", LOCK), "v:")
        client.close()
        assert stored == caches["locks"].client.encode(value)
        assert json.dumps(value).encode() != stored
    with override_settings(DJANGO_LATCH={"CACHE_ALIAS": "locks"}):
        # Another serializer cannot read it: a miss, not an error.
        assert snapshot(NAME, lambda: "pickled") == "pickled"


def test_s36_all_shapes_are_published_together_and_one_is_fetched(
    raw: redis.Redis, sweep: Sweep
) -> None:
    full = snapshot(
        NAME,
        fresh_for=60,
        shapes={"compact": lambda value: {"ok": value > 0}, "text": str},
    )
    compact, text = full.shaped("compact"), full.shaped("text")
    assert compact.get(sweep) == {"ok": True}
    assert full.get(sweep) == 1
    assert text.get(sweep) == "1"
    assert sweep.runs == 1
    reports = [shape.peek() for shape in (full, compact, text)]
    assert len({report.fence for report in reports}) == 1
    assert max(r.age for r in reports) - min(r.age for r in reports) < 1
    with raw.monitor() as monitor:
        assert compact.get(sweep) == {"ok": True}
        seen = ""
        while "HMGET" not in seen:
            seen = monitor.next_command()["command"]
    assert seen.split()[-1] == "v:compact"
    assert "v: " not in seen


def test_s36_a_shape_that_is_new_is_a_miss(sweep: Sweep) -> None:
    snapshot(NAME, sweep)
    newer = snapshot(NAME, shapes={"text": str})
    assert newer.shaped("text").get(sweep) == "2"
    assert newer.get(sweep) == 2


def test_peek_computes_nothing_and_writes_nothing(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=60)
    raw.set("guard", "1", px=60_000)
    size = raw.dbsize()
    report = shared.peek()
    assert (report.state, report.value, report.refreshing) == ("miss", None, False)
    assert raw.dbsize() == size
    raw.delete("guard")
    with sweep.held():
        first = call(shared.get, sweep)
        sweep.await_begin()
        assert shared.peek().refreshing
    first.result(10)
    report = shared.peek()
    assert (report.state, report.value, report.outcome) == ("hit", 1, "peek")
    assert report.took < 5
    assert sweep.runs == 1


def test_after_keep_for_there_is_nothing_left(raw: redis.Redis, sweep: Sweep) -> None:
    shared = snapshot(NAME, fresh_for=0.1, keep_for=0.2)
    shared.get(sweep)
    time.sleep(0.3)
    assert not raw.exists(audit.key("S", LOCK))
    assert shared.peek().state == "miss"


def test_a_tenants_snapshots_are_its_own() -> None:
    with override_settings(
        DJANGO_LATCH={"CACHE_ALIAS": "locks", "NAMESPACE": "tests.snapshot.test_reading.tenant"}
    ):
        global who
        who = "blue"
        assert snapshot(NAME, lambda: "of blue") == "of blue"
        who = "red"
        assert snapshot(NAME, lambda: "of red") == "of red"
        who = "blue"
        assert snapshot(NAME, lambda: "never") == "of blue"


who = ""


def tenant() -> str:
    return who
