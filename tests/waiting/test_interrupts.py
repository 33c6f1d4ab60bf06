"""Threads that are interrupted, by a signal or by another thread, wherever they are just then."""

from __future__ import annotations

import ctypes
import gc
import linecache
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis

import django_latch
from django_latch import Latch, LatchTimeout, latch
from django_latch.core import verbs
from django_latch.core.tokens import new_token
from django_latch.heartbeat import Heartbeat
from django_latch.store.connections import store
from tests.chaos.crowd import LONG
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.programs import program
from tests.integration.until import until
from tests.waiting.crowd import PATIENCE, Crowd, eventually, waiters

pytestmark = [
    pytest.mark.usefixtures("_litter"),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]

PACKAGE = str(Path(django_latch.__file__).parent)


class Interrupted(BaseException):
    """What is raised in the midst of things."""


def lock(**options: Any) -> Latch:
    return latch("job", **{"ttl": 20, "timeout": PATIENCE, **options})


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise `error` in another thread, when it next runs Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


@pytest.mark.usefixtures("_brisk")
def test_threads_interrupted_in_a_wait_leave_the_queue(raw: redis.Redis, crowd: Crowd) -> None:
    idents: list[int] = []

    def wait() -> None:
        idents.append(threading.get_ident())
        with pytest.raises(Interrupted):
            lock().acquire()

    with lock():
        first = crowd.queue_up(lock().acquire)
        for _ in range(10):
            crowd.queue_up(wait)
        last = crowd.queue_up(lock().acquire)
        for ident in idents:
            raise_in(ident, Interrupted)
        until(lambda: waiters(raw) == 2)
        assert list(audit.tombs(raw, "job").values()).count("abandoned") == 10
    lease = first.result(PATIENCE)
    assert not last.done()
    lease.release()
    last.result(PATIENCE).release()
    audit.assert_free(raw, "job")


WAIT = """
import signal
def stop(number, frame): raise SystemExit(3)
signal.signal(signal.SIGTERM, stop)
say("waits")
try:
    latch("job", timeout=60).acquire()
finally:
    say("left")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_at_once(raw: redis.Redis, number: signal.Signals) -> None:
    with lock(), program(WAIT) as waiting:
        waiting.expect("waits")
        until(lambda: audit.blocked(raw) == 1)
        begun = time.monotonic()
        waiting.signal(number)
        waiting.expect("left")
        assert time.monotonic() - begun < 2
        assert waiters(raw) == 0
        assert waiting.end() == (3 if number == signal.SIGTERM else -signal.SIGINT)
    audit.assert_free(raw, "job")


@pytest.fixture
def _litter() -> Iterator[None]:
    """What an interrupted client leaves, such as a socket half connected, is no other test's."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def alarms() -> Iterator[Callable[[float], None]]:
    """Raise Interrupted in the main thread after so many seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    usual = signal.signal(signal.SIGALRM, ring)
    # Again and again: what a destructor was interrupted by is not raised.
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, 0.02)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, usual)


def test_signals_at_random_moments_cost_a_lease_at_most(
    raw: redis.Redis, alarms: Callable[[float], None]
) -> None:
    """An interruption between the grant and the block, or before the release, keeps the lock for
    what is left of the lease; any other leaves nothing."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    rival = threading.Event()

    def contend() -> None:
        while not rival.is_set():
            with lock(ttl=0.2):
                rival.wait(0.001)

    thread = threading.Thread(target=contend)
    thread.start()
    interrupted = 0
    for _ in range(40):
        try:
            alarms(chance.uniform(0.0002, 0.006))
            while True:
                with lock(ttl=0.2):
                    pass
        except Interrupted:
            alarms(0)
            interrupted += 1
    rival.set()
    thread.join(PATIENCE)
    assert interrupted == 40
    assert_soon_free(raw)
    assert_all_works(raw)


def assert_soon_free(raw: redis.Redis) -> None:
    until(lambda: waiters(raw) == 0)
    lock(ttl=0.2, timeout=2).acquire().release()
    eventually(lambda: audit.assert_free(raw, "job"))


def assert_all_works(raw: redis.Redis) -> None:
    """Locks are waited for, renewed and released as ever."""
    with lock(ttl=0.3) as lease:
        with pytest.raises(LatchTimeout):
            lock(timeout=0.7).acquire()
        lease.ensure_held()
    audit.assert_free(raw, "job")


#: Lines at which a tracer can come between a block and what guards it, where no interruption can.
UNGUARDED = re.compile(r".*\bwith |\s*(try|while True):")


class Bomb:
    """Traces a thread, and at the n-th line of the package does something.

    Lines that are `UNGUARDED` do not count; nor do destructors, for what is raised there is not
    raised at all.
    """

    def __init__(self, number: int, do: Callable[[], None], folder: str = PACKAGE) -> None:
        self._left = number
        self._do = do
        self._folder = folder
        self.went_off = False

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, *exc: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(self._folder) or frame.f_code.co_name == "__del__":
            return None
        if event == "line" and not UNGUARDED.match(linecache.getline(name, frame.f_lineno)):
            self._left -= 1
            if self._left == 0:
                self.went_off = True
                sys.settrace(None)
                self._do()
        return self._trace


def explode() -> None:
    raise Interrupted


def contended() -> None:
    """Wait until another thread's lease is released, and use the lock."""
    token = new_token()
    ask = lock(timeout=0, ttl=0.02)._ask(django_latch.locks.conf.load())
    store().call(verbs.request(ask, verbs.Caller(token)))
    with lock(ttl=0.3):
        pass


def free() -> None:
    with lock(ttl=0.3, timeout=0):
        pass


def several() -> None:
    with Latch.many("job", "other", ttl=0.3, timeout=0):
        pass


@pytest.mark.parametrize("use", [free, contended, several])
@pytest.mark.parametrize("stride", [40, pytest.param(1 if LONG else 5, marks=pytest.mark.chaos)])
def test_interrupted_at_any_line_it_costs_a_lease_at_most(
    raw: redis.Redis, use: Callable[[], None], stride: int
) -> None:
    number = random.randrange(stride)
    while True:
        number += stride
        use()  # or this one would have more to do, such as to connect, than the next
        assert_soon_free(raw)
        bomb = Bomb(number, explode)
        try:
            with bomb:
                use()
        except Interrupted:
            until(lambda: waiters(raw) == 0)  # though the traceback is there still
        if not bomb.went_off:
            break
        assert_soon_free(raw)
    assert number > 100
    assert_all_works(raw)


class Slate:
    """A store that notes what is sent."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def batch(self, calls: Sequence[object]) -> list[object]:
        self.calls += calls
        return [None] * len(calls)


def test_a_destructor_may_owe_a_call_at_any_line_of_the_heartbeat() -> None:
    """A wait may be garbage-collected while its thread is inside the heartbeat's own methods."""
    number, bomb = 0, None
    while bomb is None or bomb.went_off:
        number += 1
        slate: Any = Slate()
        beating = Heartbeat()
        beating._running = True  # its thread is this test's
        owe = partial(beating.owe, slate, verbs.end("job", "", "abandoned"), 60)
        bomb = Bomb(number, owe, sys.modules[Heartbeat.__module__].__file__ or "")

        def use(beating: Heartbeat, bomb: Bomb, owe: Callable[[], None], slate: Any) -> None:
            with bomb:
                owe()
                beating.nudge(slate, "job", 1)
                beating.beat()
            beating.beat()

        thread = threading.Thread(target=use, args=(beating, bomb, owe, slate), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "it waits for a lock that it has itself"
        assert len(slate.calls) == 1 + bomb.went_off
        assert not beating.owing
    assert number > 30


def test_an_interrupted_search_for_deadlocks_leaves_the_queue(
    raw: redis.Redis, crowd: Crowd
) -> None:
    ident: list[int] = []

    def wait() -> None:
        ident.append(threading.get_ident())
        with pytest.raises(Interrupted):
            lock().acquire()

    with latch_settings(DEADLOCKS=True, SLICE=0.1, LIVE=1.1, CLAIM=1.1), lock():
        crowd.queue_up(wait)
        raise_in(ident[0], Interrupted)
        until(lambda: waiters(raw) == 0)
    audit.assert_free(raw, "job")


def test_a_release_that_is_interrupted_before_it_goes_out_is_owed(
    raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks after the lease any more, and a second release would be quiet."""
    lease = latch("job", timeout=0, ttl=60).acquire()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("django_latch.core.flow.end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lease.release()
    until(lambda: audit.records(raw, "job") == {})
    lease.release()
    audit.assert_free(raw, "job")
