"""The asyncio counterpart of a sync connection, from the same settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import redis.asyncio as aioredis
import redis.asyncio.sentinel as aiosentinel
import redis.connection
import redis.sentinel
from django.core.exceptions import ImproperlyConfigured
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

#: Sync class -> async class; the first that fits, so the special ones come first.
_TWINS: list[tuple[type[Any], type[Any]]] = [
    (redis.sentinel.SentinelManagedSSLConnection, aiosentinel.SentinelManagedSSLConnection),
    (redis.sentinel.SentinelManagedConnection, aiosentinel.SentinelManagedConnection),
    (redis.connection.SSLConnection, aioredis.SSLConnection),
    (redis.connection.UnixDomainSocketConnection, aioredis.UnixDomainSocketConnection),
    (redis.connection.Connection, aioredis.Connection),
]

#: Arguments that mean sync objects, or that we decide ourselves.
_OURS = {"retry", "parser_class", "redis_connect_func", "connection_pool", "encoder_class"}


def maker(connection_class: type[Any], kwargs: dict[str, Any]) -> Callable[[], AbstractConnection]:
    """What makes async connections like the sync ones of `connection_class` and `kwargs`.

    Raises:
        ImproperlyConfigured: a connection class of the project's own, with no async twin.
    """
    twin = next((a for s, a in _TWINS if issubclass(connection_class, s)), None)
    if twin is None:
        raise ImproperlyConfigured(
            f"django_latch knows no asyncio counterpart of the connection class "
            f"{connection_class.__qualname__}; use the sync API, or redis-py's own classes"
        )
    made = {key: kwargs[key] for key in kwargs.keys() & _accepted(twin) - _OURS}
    made["retry"] = Retry(NoBackoff(), 0)
    if "connection_pool" in kwargs:
        made["connection_pool"] = _sentinel_pool(kwargs["connection_pool"], made)
    kind = twin
    return lambda: kind(**made)


def _accepted(twin: type[Any]) -> set[str]:
    """The argument names the class and its bases take."""
    return {
        name
        for base in twin.__mro__
        if base is not object
        for name in inspect.signature(vars(base).get("__init__", object)).parameters
    }


def _sentinel_pool(sync: Any, kwargs: dict[str, Any]) -> aiosentinel.SentinelConnectionPool:
    """Asks the same sentinels for the same primary."""
    manager = sync.sentinel_manager
    addresses = [
        (s.connection_pool.connection_kwargs["host"], s.connection_pool.connection_kwargs["port"])
        for s in manager.sentinels
    ]
    given = getattr(manager, "sentinel_kwargs", {})
    sentinel = aiosentinel.Sentinel(addresses, sentinel_kwargs=given)
    return aiosentinel.SentinelConnectionPool(sync.service_name, sentinel, **kwargs)
