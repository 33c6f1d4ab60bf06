"""What a lock costs a Celery task that does nothing: when it is sent, and when it runs."""

from __future__ import annotations

import socket
import time
import warnings
from collections.abc import Callable
from functools import cache
from itertools import count
from statistics import median
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import redis
from celery import Celery
from django.conf import settings

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table
from django_latch import latch
from django_latch.celery import single_flight
from django_latch.core import verbs
from django_latch.core.tokens import new_token
from django_latch.store import wire
from django_latch.store.connections import store

ROUNDS = 8
#: Jobs sent, and then run, in one round.
JOBS = 100

PLAIN = "undecorated"
RUN, ENQUEUE, BOTH = "at='run'", "at='enqueue'", "at='both'"
ONCE = "celery-once"

#: The scripts of the lock on a plain socket, and nothing else of a lock: what no client can save.
BARE = "bare scripts"

#: The least that any lock asks a server for, in the same way: what no script can save.
LEAST = "bare SET, DEL"

_numbers = count()


def measure(effort: float) -> Table:
    """Each round: jobs of each kind are sent while a solo worker waits, and then run by it."""
    with actors(2) as (worker, sender):
        worker.tell(serve)
        peers = sender.ask(names)
        rounds: dict[str, list[tuple[float, float]]] = {peer: [] for peer in peers}
        sender.ask(once, PLAIN, 10)  # connections and imports
        for turn in range(max(int(ROUNDS * effort), 4)):
            for position in range(len(peers)):
                peer = peers[(turn + position) % len(peers)]
                rounds[peer].append(_round(sender, peer))
    sent = {peer: median(pair[0] for pair in pairs) for peer, pairs in rounds.items()}
    ran = {peer: median(pair[1] for pair in pairs) for peer, pairs in rounds.items()}
    return Table(
        f"a Celery task that does nothing, solo worker: {len(rounds[PLAIN])} rounds of {JOBS}",
        ("sending", "of undecorated", "running", "throughput of undecorated"),
        [
            (
                peer,
                f"{sent[peer] * 1e6:.0f} µs",
                f"{sent[peer] / sent[PLAIN]:.2f}",
                f"{ran[peer] * 1e6:.0f} µs",
                f"{ran[PLAIN] / ran[peer]:.2f}",
            )
            for peer in peers
        ],
        [
            Goal("throughput with at='run' / undecorated", ran[PLAIN] / ran[RUN], 0.75, least=True),
            Goal("sending with at='enqueue' / undecorated", sent[ENQUEUE] / sent[PLAIN], 1.6),
        ],
        raw=[pair[1] for pair in rounds[PLAIN]],
    )


def _round(sender: Actor, peer: str) -> tuple[float, float]:
    pair: tuple[float, float] = sender.ask(once, peer, JOBS)
    return pair


def once(peer: str, jobs: int) -> tuple[float, float]:
    """Send jobs, and then let the worker run them: seconds for one, of both.

    Parameters:
        peer: which of the tasks.
        jobs: how many.
    """
    send = tasks()[peer].apply_async
    _locks().flushdb()  # what the bare ones leave behind makes those that follow slower
    gate().apply_async()
    marks().blpop(["bench:waiting"], timeout=30)
    began = time.perf_counter()
    for _ in range(jobs):
        send((next(_numbers),))
    sent = time.perf_counter() - began
    done().apply_async()
    marks().rpush("bench:gate", "go")
    ran = marks().blpop(["bench:seconds"], timeout=60)
    if ran is None:
        raise TimeoutError("the worker does not come to an end")
    return sent / jobs, float(ran[1]) / jobs


def serve() -> None:
    """Run a worker for good."""
    tasks()
    warnings.simplefilter("ignore")  # that it runs as root, for one
    quiet = ("--loglevel=ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat")
    app().worker_main(["--quiet", "worker", "--pool=solo", *quiet])


def names() -> list[str]:
    """The peers there are."""
    return list(tasks())


@cache
def app() -> Celery:
    """A Celery app on this benchmark's server."""
    made = Celery("bench", broker=f"{server()}/1")
    made.conf.update(
        task_ignore_result=True,
        broker_connection_retry_on_startup=True,
        ONCE={"backend": "celery_once.backends.Redis", "settings": {"url": f"{server()}/2"}},
    )
    return made


def server() -> str:
    """The URL of this benchmark's server, without a database."""
    return str(settings.CACHES["default"]["LOCATION"]).rpartition("/")[0]


@cache
def marks() -> redis.Redis:
    """Where sender and worker meet."""
    return redis.Redis.from_url(f"{server()}/3", decode_responses=True)


@cache
def _locks() -> redis.Redis:
    """Where the locks are."""
    return redis.Redis.from_url(f"{server()}/0")


@cache
def gate() -> Any:
    """The task that keeps the worker waiting, and starts the clock."""

    @app().task(name="bench.gate")
    def wait() -> None:
        marks().rpush("bench:waiting", "here")
        marks().blpop(["bench:gate"], timeout=60)
        marks().set("bench:began", time.time())

    return wait


@cache
def done() -> Any:
    """The task that stops the clock."""

    @app().task(name="bench.done")
    def stop() -> None:
        marks().rpush("bench:seconds", time.time() - float(marks().get("bench:began")))

    return stop


@cache
def tasks() -> dict[str, Any]:
    """The tasks that are compared, by what they are called in the table."""
    gate(), done()
    made: dict[str, Any] = {PLAIN: _task("plain")}
    for peer, at in ((RUN, "run"), (ENQUEUE, "enqueue"), (BOTH, "both")):
        made[peer] = single_flight(key="bench:{number}", at=at)(_task(at))
    made[BARE] = _bare("scripts", _scripts)
    made[LEAST] = _bare("commands", _commands)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has escapes that newer Pythons warn of
            from celery_once import QueueOnce
    except ImportError:
        return made
    made[ONCE] = _task("once", base=QueueOnce)
    return made


def _bare(what: str, lock: Callable[[str, str], None]) -> Any:
    """A task whose calls do this much of a lock when they are sent, and again when they run."""

    def nothing(number: int) -> None:
        lock(f"bench:bare:{number}", "run")

    task = app().task(name=f"bench.bare-{what}")(nothing)

    def send(args: tuple[int]) -> None:
        lock(f"bench:bare:{args[0]}", "sending")
        task.apply_async(args)

    return SimpleNamespace(apply_async=send)


def _scripts(name: str, when: str) -> None:
    """Acquire, as a call does that is sent with a lock; or acquire and release, as a run does."""
    token, pack = new_token(), store().exchange.packed  # type: ignore[attr-defined]
    ask = verbs.Ask(name=f"{name}:{when}", ttl=30, owner="{}")
    _exchange(pack(verbs.request(ask, verbs.Caller(token))))
    if when == "run":
        _exchange(pack(verbs.end(ask.name, token, "released")))


def _commands(name: str, when: str) -> None:
    """The same by plain commands, which know nothing of queues, fences or lost replies."""
    key, args = f"{name}:{when}", (new_token(), "NX", "PX", 30_000)
    _exchange(wire.command(6, wire.pack(("SET", key, *args))))
    if when == "run":
        _exchange(wire.command(2, wire.pack(("DEL", key))))


def _exchange(command: bytes) -> None:
    _wire().sendall(command)
    answer = _wire().recv(1024)
    if answer.startswith(b"-"):
        raise RuntimeError(f"the server refused: {answer!r}")


@cache
def _wire() -> socket.socket:
    with latch("bench:bare"):  # from now on the server knows the scripts
        pass
    at = urlsplit(server())
    made = socket.create_connection((str(at.hostname), at.port or 6379), timeout=30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _task(name: str, **options: Any) -> Any:
    def nothing(number: int) -> None:
        pass

    return app().task(name=f"bench.{name}", **options)(nothing)
