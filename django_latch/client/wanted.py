"""What a caller asks for, and the body and headers that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django_latch.core.timing import FOREVER, SHORTEST, seconds
from django_latch.core.tokens import new_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an acquire may say.

    Parameters:
        ttl: seconds (or timedelta) the lock outlives the last renewal.
        timeout: seconds to wait; 0 is one try. Longer than the server's limit for one request
            is well: the client goes on, in the same place.
        limit: how many may hold it at once.
        owner: a label for lists; the account stands before it.
        meta: more facts, at most 4 kB and 16 levels of JSON.
        renew: renew in the background.
    """

    ttl: float | timedelta = 30.0
    timeout: float | timedelta = 10.0
    limit: int = 1
    owner: str | None = None
    meta: Mapping[str, Any] | None = None
    renew: bool = True


def wanted(options: Options) -> dict[str, Any]:
    """The body of an acquire, with a token of its own.

    Raises:
        LatchValueError: no durations; the server knows the bounds.
    """
    body: dict[str, Any] = {
        "token": new_token(),
        "ttl": seconds(options.ttl, "ttl", least=SHORTEST, most=FOREVER),
        "timeout": seconds(options.timeout, "timeout", least=0, most=FOREVER),
        "limit": options.limit,
    }
    if options.owner is not None:
        body["owner"] = options.owner
    if options.meta is not None:
        body["meta"] = dict(options.meta)
    return body


def headers(token: str) -> dict[str, str]:
    """Who asks."""
    return {"Authorization": f"Bearer {token}"}
