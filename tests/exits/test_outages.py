"""The Redis of the locks is gone: before, during and at the end of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from example_project.valkey import EmbeddedValkey
from tests import servers
from tests.celery.harness import result, until
from tests.exits import app
from tests.exits.cell import AT_ONCE, Bound, Cell, exits
from tests.exits.elsewhere import LOCKS

#: Longest time that a connection attempt of the locks takes before it counts as an outage.
CONNECT = 5.0


@pytest.fixture
def store(settings: Any) -> Iterator[EmbeddedValkey]:
    """A server for the locks of this test alone; the broker stays where it is."""
    with servers.valkey() as server:
        locks = {**settings.CACHES["locks"], "LOCATION": f"{server.url}/0"}
        settings.CACHES = {**settings.CACHES, "locks": locks}
        yield server


@pytest.fixture
def on_it(cell: Cell, store: EmbeddedValkey) -> Iterator[None]:
    """A worker of the test's own, with its locks on that server."""
    env = {"DJANGO_SETTINGS_MODULE": "tests.exits.elsewhere", LOCKS: store.url}
    with cell.own_worker(env=env) as worker:
        cell.use(worker)
        yield


@pytest.mark.usefixtures("on_it")
@exits("lock store down before the run: sent again", "prefork", "threads", at=("run",))
def test_before(cell: Cell, store: EmbeddedValkey) -> None:
    store.stop()
    sent = cell.send(kind="late")
    cell.worker.wait_for("sent again for in")
    store.start()
    back = time.time()
    again = cell.runs_again(back, Bound("next try", 0, 32))
    assert again["retries"] == 0
    cell.go()
    cell.free(cell.ended(), AT_ONCE)
    assert result(sent) == "done"


@pytest.mark.usefixtures("on_it")
@exits("lock store down in the middle of the run: forgotten", "prefork", "threads")
def test_during(cell: Cell, store: EmbeddedValkey) -> None:
    """The run goes on, is told, and its result stands; the lock went with the store."""
    sent = cell.send(ttl=app.SHORT)
    cell.started()
    store.stop()
    cell.worker.wait_for("lost", patience=app.SHORT + CONNECT + 2)
    store.start()
    cell.free(time.time(), AT_ONCE)
    cell.go()
    cell.ended()
    assert result(sent) == "done"


@pytest.mark.usefixtures("on_it")
@exits("lock store down at the end of the run", "prefork", "threads")
def test_at_the_end(cell: Cell, store: EmbeddedValkey) -> None:
    sent = cell.send()
    cell.started()
    store.stop()
    cell.go()
    cell.ended()
    cell.worker.wait_for("could not give back the lock")
    assert result(sent) == "done"
    store.start()
    cell.free(time.time(), AT_ONCE)


@pytest.mark.usefixtures("on_it")
@exits("soft time limit in the middle of our release", "prefork")
def test_soft_limit_in_our_release(cell: Cell, store: EmbeddedValkey) -> None:
    """The store answers late, so that the limit falls into the release; that is done again."""
    with redis.Redis.from_url(store.url) as client:
        sent = cell.send(soft_time_limit=1)
        cell.started()
        client.client_pause(2500, all=False)  # every write waits
        paused = time.time()
        cell.go()
        ended = cell.ended()
        assert ended < paused + 0.7
        cell.free(paused + 2.5, AT_ONCE)
        until(sent.ready)
        assert sent.state == "FAILURE"
