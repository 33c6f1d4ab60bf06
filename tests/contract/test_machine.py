"""The scripts and the model, side by side."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence

import pytest
import redis
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from django_latch.core import verbs
from django_latch.core.replies import Busy
from django_latch.core.verbs import Ask, Caller
from django_latch.store.redis import RedisStore
from django_latch.store.scripts import KEYS
from tests import servers
from tests.contract.engines import AsyncServerEngine, Engine, ModelEngine, ServerEngine
from tests.contract.invariants import require
from tests.contract.state import State
from tests.contract.virtual import VirtualServer, virtual_scripts
from tests.contract.whole import WholeMachine

#: How many examples are tried. By default always the same few; CI tries many, others each time.
EXAMPLES = int(os.environ.get("LATCH_EXAMPLES", "0"))

SETTINGS = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    database=None,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
)


@pytest.fixture(params=["sync", "async"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerEngine]:
    url = servers.private_url()
    pool = redis.ConnectionPool.from_url(url, **servers.connections())
    store = RedisStore(pool, "latch")
    client = redis.Redis.from_url(url, decode_responses=True)
    with virtual_scripts(), client, asyncio.Runner() as runner:
        virtual = VirtualServer(client)
        if request.param == "sync":
            yield ServerEngine(store, virtual)
        else:
            yield AsyncServerEngine(store, virtual, runner)


def test_the_scripts_do_what_the_model_does(server: ServerEngine) -> None:
    class Both(WholeMachine):
        def engines(self) -> Sequence[Engine]:
            server.flush()
            return server, ModelEngine()

        def check_now(self) -> None:
            super().check_now()
            if self.torn is None:
                keys_last(server, self.seen)
                assert not server.unlisted, "records that nothing will ever take away"

    run_state_machine_as_test(Both, settings=SETTINGS)


def test_a_late_copy_of_a_forgotten_try_leaves_no_record(server: ServerEngine) -> None:
    server.flush()
    old = verbs.request(Ask(name="a", ttl=1, owner="{}"), Caller("1" * 32))
    server.run(old)
    server.move(server.server.us + 2_000_000)
    server.run(verbs.request(Ask(name="a", ttl=300, owner="{}"), Caller("2" * 32)))
    server.move(server.server.us + 61_000_000)
    assert isinstance(server.run(old), Busy)
    server.state()
    assert not server.unlisted


def keys_last(server: ServerEngine, seen: State) -> None:
    """I8: a key lives as long as the last thing in it that matters."""
    needs: dict[str, list[int]] = {}
    for name, lock in seen.locks.items():
        of = dict(zip(KEYS, server.store.layout.keys(name), strict=True))
        tombs = [tomb.forget for tomb in lock.tombs.values()]
        needs[of["R"]] = [*(holder.exp for holder in lock.holders), *lock.alive.values(), *tombs]
        needs[of["Q"]] = needs[of["V"]] = list(lock.alive.values())
        needs[of["P"]] = tombs
        needs[of["L"]] = list(lock.jobs.values())
        needs[of["index"]] = list(seen.index.values())
    for key, moments in needs.items():
        last = max([at for at in moments if at >= seen.now], default=0)
        require(not last or server.lasting[key] >= last - seen.now, 8, f"{key} ends too early")
