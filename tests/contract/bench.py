"""A store under a clock that stands still until the test moves it, and the calls on one lock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from django_latch.core import replies, verbs
from django_latch.core.calls import Call
from django_latch.core.verbs import Ask, Caller
from django_latch.store.base import Store
from django_latch.store.memory import MemoryStore
from django_latch.store.redis import RedisStore
from tests import servers
from tests.contract.virtual import BEGIN, VirtualServer, virtual_scripts

#: The stores that keep every promise.
STORES = ("memory", "memory, async", "redis", "redis, async")


def token(n: int) -> str:
    return f"{n:032x}"


class Bench:
    """Calls on the lock "lock", by the numbers of their tokens. Times in seconds."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def call(self, call: Call[Any]) -> Any:
        return self.store.call(call)

    def advance(self, seconds: float) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def request(
        self,
        n: int,
        *,
        lease: float = 30,
        wait: float = 0,
        limit: int = 1,
        ticket: int = 0,
        silent: int = 0,
        job: str = "",
        name: str = "lock",
        **more: Any,
    ) -> Any:
        owner = f'{{"label":"{n}"}}'
        ask = Ask(name=name, ttl=lease, owner=owner, timeout=wait, limit=limit, **more)
        caller = Caller(token(n), job, token(n)[-16:] if wait else "")
        return self.call(verbs.request(ask, caller, ticket=ticket, silent=silent))

    def wait(self, n: int, **asked: Any) -> Any:
        """A request that stands in the queue if it must."""
        return self.request(n, wait=10, **asked)

    def renew(self, n: int, lease: float, fence: int | None = None) -> Any:
        return self.call(verbs.renew("lock", token(n), fence, lease))

    def release(self, n: int, fence: int | None = None, **more: Any) -> Any:
        return self.call(verbs.end("lock", token(n), "released", fence, **more))

    def abandon(self, n: int) -> Any:
        return self.call(verbs.end("lock", token(n), "abandoned", resent=True))

    def adopt(self, old: int, new: int, lease: float = 30) -> Any:
        return self.call(verbs.adopt("lock", token(old), token(new), lease, "{}"))

    def holders(self, name: str = "lock") -> list[str]:
        """State and number of each holder, by fence."""
        listing: replies.Listing = self.call(verbs.read(name))
        by_fence = sorted(listing.holders, key=lambda holder: holder.fence)
        return [f"{h.state} {h.owner.label}" for h in by_fence]

    def waiters(self) -> int:
        listing: replies.Listing = self.call(verbs.read("lock"))
        return listing.waiters


class MemoryBench(Bench):
    def __init__(self) -> None:
        self.memory = MemoryStore(lambda: BEGIN / 1e6)
        super().__init__(self.memory)

    def advance(self, seconds: float) -> None:
        self.memory.advance(seconds)

    def flush(self) -> None:
        self.memory.flush()


class ServerBench(Bench):
    def __init__(self, store: RedisStore, server: VirtualServer) -> None:
        super().__init__(store)
        self.server = server

    def advance(self, seconds: float) -> None:
        self.server.move(self.server.us + round(seconds * 1e6))

    def flush(self) -> None:
        self.server.flush()


@contextmanager
def bench(kind: str) -> Iterator[Bench]:
    """A bench on one of STORES."""
    name, _, is_async = kind.partition(", ")
    with memory_or_server(name) as made:
        if not is_async:
            yield made
            return
        with asyncio.Runner() as runner:

            async def in_loop(call: Call[Any]) -> Any:
                return await made.store.twin().call(call)

            made.call = lambda call: runner.run(in_loop(call))  # type: ignore[method-assign]
            yield made


@contextmanager
def memory_or_server(name: str) -> Iterator[Bench]:
    if name == "memory":
        yield MemoryBench()
        return
    url = servers.private_url()
    client = redis.Redis.from_url(url, decode_responses=True)
    pool = redis.ConnectionPool.from_url(url, **servers.connections())
    with virtual_scripts(), client:
        yield ServerBench(RedisStore(pool, "latch"), VirtualServer(client))
