"""Which store an alias means."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from django.core.cache import InvalidCacheBackendError, caches
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django_redis import get_redis_connection

from django_latch.conf import conf
from django_latch.store.base import Store
from django_latch.store.codec import AliasCodec
from django_latch.store.memory import MemoryStore
from django_latch.store.redis import RedisStore

Stores = dict[tuple[str, str], Store]  # by backend and alias

_stores: Stores = {}
_mutex = Lock()


def store(using: str | None = None) -> Store:
    """The lock store of a cache alias.

    Parameters:
        using: an alias in CACHES; the CACHE_ALIAS setting when omitted. Locks in memory
            (BACKEND) need no such cache: there any name stands for a store of its own.

    Raises:
        ImproperlyConfigured: there is no such alias, or it is not a django-redis one.
    """
    settings = conf.load()
    at = settings.backend, using or settings.cache_alias
    found = _stores.get(at)
    if found is None:
        with _mutex:
            found = _stores.get(at) or _stores.setdefault(at, _make(*at))
    return found


def _make(backend: str, alias: str) -> Store:
    if backend == "memory":
        return MemoryStore()
    try:
        client = get_redis_connection(alias, write=True)
        pool = client.connection_pool
    except InvalidCacheBackendError as error:
        raise ImproperlyConfigured(
            f"django_latch keeps its locks in the cache alias {alias!r}, and CACHES has none of "
            f"that name; name a django-redis alias in DJANGO_LATCH['CACHE_ALIAS']"
        ) from error
    except (NotImplementedError, AttributeError) as error:
        kind = f"{type(caches[alias]).__module__}.{type(caches[alias]).__qualname__}"
        raise ImproperlyConfigured(
            f"django_latch needs a django-redis cache, and the alias {alias!r} is a {kind}; set "
            f"its BACKEND to 'django_redis.cache.RedisCache', or name another alias in "
            f"DJANGO_LATCH['CACHE_ALIAS']"
        ) from error
    except ValueError:
        # Not shown, nor chained: what stands in the wrong place may be a part of the password.
        raise ImproperlyConfigured(
            f"the LOCATION of the cache alias {alias!r} is not a valid redis://, rediss:// or "
            f"unix:// URL; characters such as # / ? @ in a password must be percent-encoded"
        ) from None
    cache: Any = caches[alias]
    return RedisStore(pool, prefix(alias), AliasCodec(cache.client), cache.version)


def prefix(alias: str) -> str:
    """What the keys of this project begin with: braces would move the hash tag."""
    own = conf.prefix
    key_prefix = caches[alias].key_prefix
    text = own if own is not None else f"{key_prefix}:latch" if key_prefix else "latch"
    for char in "%{}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


@receiver(setting_changed)
def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in ("CACHES", "DJANGO_LATCH"):
        _drop("redis")


def swap_memory(stores: Stores | None = None) -> Stores:
    """Go on with other memory stores, by default with empty ones; those that were there."""
    before = _drop("memory")
    _stores.update(stores or {})
    return before


def _drop(backend: str) -> Stores:
    return {at: _stores.pop(at) for at in list(_stores) if at[0] == backend}


# A child has no part in what its parent holds in memory.
os.register_at_fork(after_in_child=swap_memory)
