"""A value that is costly to compute and wanted by 50 callers in 4 processes, cold and expiring."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from statistics import median, quantiles
from typing import Any

from cacheops import cached_as
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache as django_cache
from django_redis import get_redis_connection
from dogpile.cache import make_region

from benchmarks.actors import Actor, actors
from benchmarks.figures import Goal, Table, ms
from benchmarks.measure import run
from django_latch import snapshot

PROCESSES = 4
CALLERS = 50
ROUNDS, COLD_ROUNDS = 3, 9

#: Keys that a compute looks at, one by one, as a health check does.
SWEEP = 390

#: Seconds of a value's freshness while it expires again and again, and of a round of that.
FRESH, LONG = 0.5, 2.5

#: Seconds between two calls of one caller in such a round.
PAUSE = 0.02

OURS, GET_OR_SET = "django_latch snapshot", "cache.get_or_set"
DOGPILE, CACHEOPS = "dogpile.cache", "cacheops, locked"

Value = dict[str, Any]
VALUE: Value = {"status": "ok", "checks": [{"name": f"check {n}", "ok": True} for n in range(20)]}

computes: list[float] = []


def compute() -> Value:
    """The costly value; when it was begun is noted."""
    computes.append(time.monotonic())
    client = get_redis_connection("default")
    for number in range(SWEEP):
        client.exists(f"swept:{number}")
    return VALUE


# The peers, each as a function of the key.


def _ours(key: str) -> Value:
    return snapshot(key, compute, fresh_for=FRESH, keep_for=60, wait=10)  # type: ignore[no-any-return]


def _get_or_set(key: str) -> Value | None:
    return django_cache.get_or_set(key, compute, FRESH)


@cache
def _region() -> Any:
    arguments = {
        "url": settings.CACHES["default"]["LOCATION"],
        "distributed_lock": True,
        "lock_timeout": 10,
        "thread_local_lock": False,
    }
    return make_region().configure(
        "dogpile.cache.redis", expiration_time=FRESH, arguments=arguments
    )


def _dogpile(key: str) -> Value:
    return _region().get_or_create(key, compute)  # type: ignore[no-any-return]


@cache
def _cached() -> Callable[[str], Value]:
    @cached_as(ContentType, timeout=1, lock=True)  # whole seconds only
    def value(key: str) -> Value:
        return compute()

    return value  # type: ignore[no-any-return]


def _cacheops(key: str) -> Value:
    return _cached()(key)


PEERS: dict[str, Callable[[str], Value | None]] = {
    OURS: _ours,
    DOGPILE: _dogpile,
    CACHEOPS: _cacheops,
    GET_OR_SET: _get_or_set,
}

# What an actor is asked to do.

_pool: list[ThreadPoolExecutor] = []


def once(peer: str, key: str, callers: int, start: float) -> tuple[list[float], int]:
    """Each caller asks once, all at the same time; the seconds of each, and the computes."""
    return _all(callers, lambda: _asked(peer, key, start, start))


def again(peer: str, key: str, callers: int, start: float) -> tuple[list[float], int]:
    """Each caller asks again and again for a while."""
    return _all(callers, lambda: _asked(peer, key, start, start + LONG))


def _all(callers: int, work: Callable[[], list[float]]) -> tuple[list[float], int]:
    if not _pool:
        _pool.append(ThreadPoolExecutor(CALLERS))
    computes.clear()
    futures = [_pool[0].submit(work) for _ in range(callers)]
    return list(chain(*(future.result() for future in futures))), len(computes)


def _asked(peer: str, key: str, start: float, end: float) -> list[float]:
    ask, waits = PEERS[peer], []
    time.sleep(max(start - time.monotonic(), 0))
    while True:
        began = time.monotonic()
        if ask(key) != VALUE:
            raise AssertionError(f"{peer} gave something else")
        waits.append(time.monotonic() - began)
        if time.monotonic() + PAUSE >= end:
            return waits
        time.sleep(PAUSE)


def reads() -> int:
    """How often the server has read from its clients: round trips, more or less."""
    return int(get_redis_connection("default").info("stats")["total_reads_processed"])


def hit(rounds: int) -> tuple[float, list[float]]:
    """A fresh hit of ours over cache.get of the same value; and the rounds of the latter."""
    django_cache.set("hit", VALUE, 600)
    ours = snapshot("hit", fresh_for=600)
    ours.get(lambda: VALUE)
    peers = {
        "cache.get": lambda: django_cache.get("hit"),
        OURS: lambda: snapshot("hit", compute, fresh_for=600),
    }
    found = run(peers, "cache.get", rounds=rounds, calls=300)
    return found[OURS].ratio, found["cache.get"].seconds


def measure(effort: float) -> Table:
    """Each round: every peer, in turns; first cold ones, then expiring ones."""
    rounds, cold_rounds = max(int(ROUNDS * effort), 2), max(int(COLD_ROUNDS * effort), 3)
    with actors(PROCESSES + 1) as everybody:
        *askers, observer = everybody
        for peer in PEERS:
            for asker in askers:  # one thread first: not every client is made by many at once
                asker.ask(once, peer, "first", 1, 0.0)
            _round(once, peer, "warm", askers, observer)
        cold = _rounds(once, cold_rounds, askers, observer)
        expiring = _rounds(again, rounds, askers, observer)
        ratio, raw = observer.ask(hit, max(int(20 * effort), 8))
    p99 = {peer: max(cold[peer][2], 1e-6) for peer in PEERS}
    best = min(value for peer, value in p99.items() if peer != OURS)
    late = {peer: expiring[peer][2] for peer in PEERS}
    return Table(
        f"{CALLERS} callers in {PROCESSES} processes, a sweep of {SWEEP} keys: "
        f"{cold_rounds} rounds cold, then {rounds} of {LONG:g} s with a value fresh for "
        f"{FRESH:g} s (cacheops: 1 s)",
        ("cold: computes", "p50", "p99", "reads", "expiring: computes", "p50", "p99", "reads"),
        [(peer, *_cells(cold[peer]), *_cells(expiring[peer])) for peer in PEERS],
        [
            Goal("computes of cold callers", cold[OURS][0], 1),
            Goal(f"p99 of cold callers / best other ({ms(best)})", p99[OURS] / best, 1),
            Goal("p99 while it expires / cacheops, locked", late[OURS] / late[CACHEOPS], 1),
            Goal("fresh hit / cache.get", ratio, 1.2),
        ],
        raw=raw,
    )


Found = tuple[float, float, float, float]  # computes, p50, p99, reads


def _cells(found: Found) -> tuple[str, ...]:
    return f"{found[0]:.0f}", ms(found[1]), ms(found[2]), f"{found[3]:.0f}"


def _rounds(
    what: Callable[..., Any], rounds: int, askers: list[Actor], observer: Actor
) -> dict[str, Found]:
    names = list(PEERS)
    found: dict[str, list[Found]] = {peer: [] for peer in names}
    for turn in range(rounds):
        for position in range(len(names)):
            peer = names[(turn + position) % len(names)]
            found[peer].append(_round(what, peer, f"{what.__name__}:{turn}", askers, observer))
    return {
        peer: tuple(median(column) for column in zip(*rows, strict=True))  # type: ignore[misc]
        for peer, rows in found.items()
    }


def _round(
    what: Callable[..., Any], peer: str, key: str, askers: list[Actor], observer: Actor
) -> Found:
    key = f"{what.__name__}:{key}:{secrets.token_hex(4)}"  # a cold one, also when measured again
    before = observer.ask(reads)
    start = time.monotonic() + 0.2
    for number, asker in enumerate(askers):
        callers = CALLERS // PROCESSES + (number < CALLERS % PROCESSES)
        asker.tell(what, peer, key, callers, start)
    answers = [asker.answer() for asker in askers]
    waits = list(chain(*(answer[0] for answer in answers)))
    cuts = quantiles(waits, n=100)
    return sum(answer[1] for answer in answers), cuts[49], cuts[98], observer.ask(reads) - before
