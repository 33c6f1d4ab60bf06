"""A client of the HTTP API, sync and async; needs the extra `client` (httpx).

::

    with LatchClient("https://locks.example", token="latch_...") as client:
        with client.lock("deploy:prod", ttl=30, timeout=60) as lease:
            deploy(fence=lease.fence)
            lease.ensure_held()

It raises the same errors as the engine. A lease is renewed in the background.
"""

from __future__ import annotations

try:
    import httpx  # noqa: F401  the extra may be missing
except ImportError as error:
    raise ImportError(
        "django_latch.client needs httpx: pip install 'django-latch-locks[client]'"
    ) from error

from django_latch.client.aio import AsyncLatchClient, AsyncRemoteLease
from django_latch.client.blocking import LatchClient, RemoteLease

__all__ = ["AsyncLatchClient", "AsyncRemoteLease", "LatchClient", "RemoteLease"]
