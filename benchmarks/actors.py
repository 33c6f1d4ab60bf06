"""Processes that do what they are told."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds after which an answer is missed.
PATIENCE = 60.0

#: Forked, for that takes milliseconds. The process that forks must have no threads, so it never
#: takes a lock itself.
_fork = multiprocessing.get_context("fork")


class ActorError(RuntimeError):
    """An actor failed or did not answer."""


class Actor:
    """A process that runs one function after another and returns what they return."""

    def __init__(self) -> None:
        self._pipe, theirs = _fork.Pipe()
        self._process = _fork.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have it run a function; ask for what came of it by `answer`."""
        self._pipe.send((function, args, kwargs))

    def answer(self) -> Any:
        """What the function it was told first returned.

        Raises:
            ActorError: it raised, or did not answer.
        """
        if not self._pipe.poll(PATIENCE):
            raise ActorError(f"no answer for {PATIENCE:g} s")
        error, result = self._pipe.recv()
        if error:
            raise ActorError(error)
        return result

    def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have it run a function, and wait for what it returns."""
        self.tell(function, *args, **kwargs)
        result: T = self.answer()
        return result

    def kill(self) -> None:
        """End it with SIGKILL: it can tidy nothing up. Returns when it has ended."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


@contextmanager
def actors(count: int) -> Iterator[list[Actor]]:
    """Some processes, for as long as the body takes."""
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(Actor())
            stack.callback(made[-1].kill)
        yield made


def _serve(pipe: Connection, parent: int) -> None:
    while os.getppid() == parent:  # its siblings hold its pipe open as well: no end of file comes
        if not pipe.poll(1.0):
            continue
        function, args, kwargs = pipe.recv()
        try:
            answer = "", function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  told to whoever asked
            answer = f"{function.__name__}: {error!r}", None
        pipe.send(answer)
