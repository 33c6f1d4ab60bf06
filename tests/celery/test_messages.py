"""What a message carries, and what it does not."""

from __future__ import annotations

import json
import pickle
from contextlib import closing

import pytest
import redis
from celery.backends.base import Backend

from django_latch import LatchBusy
from tests import servers
from tests.celery import app
from tests.celery.harness import BROKER, PATIENCE, Label, Worker


def send(task, worker: Worker, *args, **options):
    return task.apply_async(args, queue=worker.queue, **options)


def test_children_and_links_inherit_nothing(worker: Worker, label: Label):
    """Even where all headers of the parent are passed on."""
    link = app.hold.s(1).set(queue=worker.queue)
    with closing(Label(f"{label}-child")) as of_child, closing(Label(f"{label}-link")) as of_link:
        send(app.parent, worker, str(label), headers={"mine": "kept"}, link=link)
        carried = label.next("parent")["headers"]
        assert carried["mine"] == "kept"
        assert carried["django_latch"]["key"] == f"parent:{label}"
        carried = of_child.next("start")["headers"]
        assert carried["mine"] == "kept"
        assert carried["django_latch"]["key"] == f"hold:{of_child}"
        carried = of_link.next("start")["headers"]
        assert "mine" not in carried
        assert carried["django_latch"]["key"] == f"hold:{of_link}"


def test_no_secret_leaves_the_worker(worker: Worker, label: Label):
    """A retry passes on its headers, the key among them, but not the token of the run."""
    send(app.sends_away, worker, str(label), headers={"mine": "kept"})
    with redis.Redis.from_url(servers.url(BROKER), socket_timeout=PATIENCE + 5) as broker:
        _, message = broker.blpop([f"nobody-{label}"], timeout=PATIENCE)
    headers = json.loads(message)["headers"]
    assert headers["mine"] == "kept"
    assert headers["django_latch"]["key"] == f"sends_away:{label}"
    assert "django_latch_run" not in headers


@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_errors_survive_the_way_back(serializer):
    """As a result backend stores them."""
    holder = {"task": "tasks.sync", "pid": 5, "since": "2026-11-30T00:00:00+00:00"}
    error = LatchBusy("held", name="a", holder=holder, ttl_remaining=2.5, reason="busy")
    if serializer == "pickle":
        back = pickle.loads(pickle.dumps(error))
    else:
        backend = Backend(app.app, serializer="json")
        stored = json.loads(json.dumps(backend.prepare_exception(error, "json")))
        back = backend.exception_to_python(stored)
    assert isinstance(back, LatchBusy)
    assert str(back) == "held"
    assert (back.name, back.holder, back.ttl_remaining) == ("a", holder, 2.5)
