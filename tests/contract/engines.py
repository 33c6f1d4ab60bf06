"""The two ways to run a call: the scripts on a server, and the model."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import Any, Protocol

from django_latch.core.calls import Call, Park
from django_latch.core.model import Model
from django_latch.core.model_state import Lock, NextRun, Terms, WakeList
from django_latch.core.timing import now
from django_latch.store.redis import RedisStore
from tests.contract import state
from tests.contract.state import State
from tests.contract.virtual import BEGIN, VirtualServer

#: What tests/settings.py says, for the model.
TERMS = Terms(grace=60_000, live=3_000, events=2)


class Engine(Protocol):
    """Locks under the test's clock."""

    def move(self, us: int) -> None:
        """Set the clock."""

    def run(self, call: Call[Any]) -> Any:
        """The reply to a call."""

    def park(self, call: Call[Any], token: str, wake: str) -> tuple[Any, int]:
        """Take a message from the wake list if there is one, then run the call; see Park."""

    def lose(self, kind: str, name: str) -> None:
        """Lose a key; see `core.store.scripts.KEYS`."""

    def flush(self) -> None:
        """Lose everything."""

    def lose_advice(self) -> None:
        """Lose what is no lock's: who waits for what, and the accounts' counts."""

    def state(self) -> State:
        """What is remembered, and what happened since the last look."""


class ModelEngine:
    """The model."""

    def __init__(self, kind: type[Model] = Model) -> None:
        self.kind = kind
        self.model = kind()
        self.us = BEGIN

    def move(self, us: int) -> None:
        self.us = us
        self.model.forget(us)  # for good, though the clock may be set back later

    def run(self, call: Call[Any]) -> Any:
        return self.model.run(call, self.us, TERMS).reply

    def park(self, call: Call[Any], token: str, wake: str) -> tuple[Any, int]:
        message = self.model.read_wake(wake, self.us) or ""
        return self.run(call), int(message.partition(" ")[2] or 0)

    def lose(self, kind: str, name: str) -> None:
        bucket = self.model.bucket
        lock = bucket.locks.setdefault(name, Lock())
        match kind:
            case "R":
                lock.records, lock.holding, lock.tombs = {}, [], {}
            case "P":  # the tombs stay, and nothing says for how long
                lock.tombs = {t: replace(tomb, forget=-1) for t, tomb in lock.tombs.items()}
            case "Q":
                lock.queue = {}
            case "V":
                lock.alive = {}
            case "L":
                lock.jobs = {}
            case "J":
                lock.next = NextRun()
            case "due":
                bucket.due.clear()
            case "stamp":
                bucket.stamp = 0
            case "index":
                bucket.index.clear()

    def flush(self) -> None:
        self.model = self.kind()

    def lose_advice(self) -> None:
        self.model.bucket.waits.clear()
        self.model.bucket.accounts.clear()

    def state(self) -> State:
        return state.of_model(self.model, self.us)

    def copy(self) -> ModelEngine:
        """Another one in the same state."""
        twin = ModelEngine(self.kind)
        twin.us, bucket = self.us, self.model.bucket
        twin.model.bucket = replace(
            bucket,
            index=dict(bucket.index),
            events=deque(),
            wakes={w: WakeList(deque(k.messages), k.until) for w, k in bucket.wakes.items()},
            due=dict(bucket.due),
            accounts={a: dict(members) for a, members in bucket.accounts.items()},
            waits=dict(bucket.waits),
            locks={name: state.copied(lock) for name, lock in bucket.locks.items()},
        )
        return twin


class ServerEngine:
    """The scripts, through the sync store."""

    def __init__(self, store: RedisStore, server: VirtualServer) -> None:
        self.store = store
        self.server = server
        self.lasting: dict[str, int] = {}  # key -> ms, at the last look
        self.unlisted: set[str] = set()  # tokens in records only, at the last look

    def move(self, us: int) -> None:
        self.server.move(us)

    def run(self, call: Call[Any]) -> Any:
        return self.store.call(call)

    def park(self, call: Call[Any], token: str, wake: str) -> tuple[Any, int]:
        return self.store.park(Park(call, token, wake, now()))

    def lose(self, kind: str, name: str) -> None:
        layout = self.store.layout
        keys = {layout.split(key)[0]: key for key in layout.keys(name)}
        self.server.client.delete(keys[kind])

    def flush(self) -> None:
        self.server.flush()

    def lose_advice(self) -> None:
        bucket = self.store.layout.bucket
        self.server.client.delete(bucket + "waits", bucket + "A:x", bucket + "A:y")

    def state(self) -> State:
        keys, self.lasting = self.server.dump()
        split = self.store.layout.split
        self.unlisted = state.unlisted(keys, split)
        return state.of_server(keys, split, self.server.us)


class AsyncServerEngine(ServerEngine):
    """The scripts, through the async store.

    That store listens on one wake list for all its waiters. Here each caller has its own, so the
    message is taken by hand.
    """

    def __init__(self, store: RedisStore, server: VirtualServer, runner: asyncio.Runner) -> None:
        super().__init__(store, server)
        self.runner = runner

    def run(self, call: Call[Any]) -> Any:
        async def in_loop() -> Any:
            return await self.store.twin().call(call)

        return self.runner.run(in_loop())

    def park(self, call: Call[Any], token: str, wake: str) -> tuple[Any, int]:
        message = self.server.client.lpop(self.store.layout.wake_list(wake)) or ""
        return self.run(call), int(message.partition(" ")[2] or 0)
