from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.test import Client

from django_latch import inventory
from django_latch.core import verbs
from django_latch.core.replies import Granted
from django_latch.core.verbs import Ask, Caller
from django_latch.store.connections import store
from tests.admin.pages import LIST
from tests.integration.calls import OWNER
from tests.integration.until import until
from tests.scale.conftest import Stopwatch

LOCKS = 100_000


def hold_all(ttl: float) -> None:
    """So many locks, each held by somebody else."""
    requests = (
        verbs.request(Ask(name=f"invoice:{n}", ttl=ttl, owner=OWNER), Caller(f"{n:032x}"))
        for n in range(LOCKS)
    )
    at = store()
    while part := list(islice(requests, 500)):
        for reply in at.pipeline(part):
            assert isinstance(reply, Granted), reply


@pytest.fixture
def held(raw: redis.Redis, measure: Stopwatch) -> Iterator[None]:
    raw.execute_command("FLUSHDB", "SYNC")
    before = raw.info("memory")["used_memory"]
    with measure(f"{LOCKS:,} locks taken"):
        hold_all(ttl=3600)
    each = (raw.info("memory")["used_memory"] - before) / LOCKS
    measure.say(f"memory of one lock: {each:.0f} bytes")
    assert each < 2000
    yield
    raw.flushdb()


@pytest.mark.usefixtures("held")
@pytest.mark.django_db
def test_lists_do_not_depend_on_how_many_there_are(
    raw: redis.Redis, measure: Stopwatch, client: Client
) -> None:
    assert inventory.count() == LOCKS
    for offset in (0, LOCKS // 2, LOCKS - 100):
        with measure(f"100 locks from place {offset:,}"):
            assert len(inventory.page(offset, 100)) == 100
    for query in ("", "?p=500"):
        before = raw.info("commandstats")["cmdstat_evalsha"]["calls"]
        with measure(f"a page of the admin {query}"):
            answer = client.get(LIST + query)
        assert answer.status_code == 200
        assert len(answer.context["cl"].result_list) == 100
        assert raw.info("commandstats")["cmdstat_evalsha"]["calls"] - before <= 110
    with measure("a search in the admin"):
        assert client.get(f"{LIST}?q=invoice:4242").status_code == 200


@pytest.mark.usefixtures("held")
def test_a_lock_costs_what_it_costs_alone(measure: Stopwatch) -> None:
    at, rounds = store(), 1000
    with measure(f"{rounds} times acquire and release beside them"):
        for n in range(rounds):
            token = f"{LOCKS + n:032x}"
            at.call(verbs.request(Ask(name="one", ttl=30, owner=OWNER), Caller(token)))
            assert at.call(verbs.end("one", token, "released")).reason == "released"


@pytest.mark.usefixtures("held")
def test_the_list_command_prints_its_most(measure: Stopwatch) -> None:
    out = io.StringIO()
    with measure("latch_list --format json"):
        call_command("latch_list", format="json", limit=10_000, stdout=out)
    listed: Any = json.loads(out.getvalue())
    assert len(listed) == 10_000


def test_stale_locks_are_cleared_without_a_long_command(
    raw: redis.Redis, measure: Stopwatch
) -> None:
    hold_all(ttl=20)
    index = next(key for key in raw.keys("*index"))
    last = max(score for _, score in raw.zrange(index, -1, -1, withscores=True)) / 1000
    until(lambda: time.time() > last + 0.1, within=30)
    with measure(f"latch_clear frees {LOCKS:,} stale locks"):
        call_command("latch_clear", "--stale", stdout=io.StringIO())
    assert inventory.count() == 0
    slowest = max((entry["duration"] for entry in raw.slowlog_get(128)), default=0)
    assert slowest < 1_000_000, "a command kept the server for a second"
