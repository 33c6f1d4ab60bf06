"""The scripts and the model, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest
import redis
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from django_latch.store.redis import RedisStore
from tests import servers
from tests.contract.callers import Machine
from tests.contract.engines import Engine, ModelEngine, ServerEngine
from tests.contract.virtual import VirtualServer, virtual_scripts

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


@pytest.fixture
def server() -> Iterator[ServerEngine]:
    pool = redis.ConnectionPool.from_url(servers.url())
    client = redis.Redis.from_url(servers.url(), decode_responses=True)
    with virtual_scripts(), client:
        yield ServerEngine(RedisStore(pool, "latch"), VirtualServer(client))


def test_the_scripts_do_what_the_model_does(server: ServerEngine) -> None:
    class Both(Machine):
        def engines(self) -> Sequence[Engine]:
            server.flush()
            return server, ModelEngine()

        def check_now(self) -> None:
            super().check_now()
            if self.torn is None:
                keys_last(server)
                assert not server.unlisted, "records that nothing will ever take away"

    run_state_machine_as_test(Both, settings=SETTINGS)


def keys_last(server: ServerEngine) -> None:
    """I8: a key lives as long as what it holds."""
