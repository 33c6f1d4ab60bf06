"""Every error as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.http import JsonResponse

from django_latch.exceptions import (
    LatchBusy,
    LatchDeadlock,
    LatchError,
    LatchNotAcquired,
    LatchNotHeld,
    LatchQueueFull,
    LatchTimeout,
)

#: code -> (status, title, advice). The codes never change; docs/howto/http-api.md explains each.
CODES: Final[Mapping[str, tuple[int, str, str]]] = {
    "invalid_request": (400, "The request is not valid", ""),
    "invalid_key": (400, "This is not a valid key", "A key has 1-255 characters and no slash."),
    "unauthenticated": (401, "Who are you?", "Send the header `Authorization: Bearer <token>`."),
    "out_of_scope": (403, "This account may not touch this key", ""),
    "forbidden": (403, "This account may not do that", ""),
    "not_holder": (
        403,
        "This token does not hold the lock",
        "Nothing was changed. Stop the work, and acquire anew with a fresh token.",
    ),
    "not_found": (404, "The key is free", "There is nothing to release."),
    "method_not_allowed": (405, "This method is not allowed here", ""),
    "busy": (408, "The lock is held by another", "Wait with a timeout, or try later."),
    "timeout": (408, "Waited in vain", ""),
    "deadlock": (
        409,
        "Waiting would never end",
        "Release what you hold, and acquire several locks in one order everywhere.",
    ),
    "too_large": (413, "The body is too large", ""),
    "queue_full": (
        429,
        "Too many wait for this lock",
        "Other locks are not concerned. Try later, or shard the work over several keys.",
    ),
    "too_many_locks": (429, "This account holds too many locks", "Release some."),
    "too_many_waits": (429, "Too many requests of this account wait", "Wait for some to end."),
    "internal": (500, "The server failed", ""),
    "unavailable": (503, "The lock store gave no usable answer", "Send the same request again."),
    "corrupt": (503, "A key of the lock store is broken", "`manage.py latch_clear` repairs it."),
}

#: Longest pause that is advised, in seconds.
PAUSE: Final = 30


class Problem(Exception):
    """An answer that is an error.

    Parameters:
        code: a key of CODES.
        detail: what happened, for people.
        headers: further headers.
        **facts: further members; those that are None are left out.
    """

    def __init__(
        self, code: str, detail: str, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title, advice = CODES[code]
        self.headers = dict(headers or {})
        self.facts: dict[str, Any] = {"advice": advice or None, **facts}

    def response(self, key: str | None = None) -> JsonResponse:
        """The answer to send."""
        # A key that is none may be cut where a slash was.
        facts: dict[str, Any] = {
            "key": None if self.code == "invalid_key" else key,
            **self.facts,
        }
        if self.status in (408, 429, 503):
            facts.setdefault("retry_after", 1)
            self.headers["Retry-After"] = str(facts["retry_after"])
        body = {
            "type": f"urn:django-latch:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
        } | {name: value for name, value in facts.items() if value is not None}
        return JsonResponse(
            body,
            status=self.status,
            headers=self.headers,
            content_type="application/problem+json",
        )


def invalid(code: str, errors: Mapping[str, str]) -> Problem:
    """What is wrong with a request, by the pointer or name of each faulty part."""
    listed = [{"pointer": pointer, "detail": detail} for pointer, detail in errors.items()]
    told = "; ".join(f"{where}: {detail}" if where else detail for where, detail in errors.items())
    return Problem(code, told, errors=listed)


def not_holder(key: str, reason: str) -> Problem:
    """The token has no lease of this lock."""
    return Problem("not_holder", f"This token does not hold {key!r}: {reason}.", reason=reason)


def unavailable(reason: str | None, code: str = "unavailable") -> Problem:
    """The store, or the database of the accounts, gave no usable answer."""
    return Problem(
        code,
        f"{CODES[code][1]}.",
        error=reason or "unknown",
        checked_at=datetime.now(UTC).isoformat(),
        retry_after=2,
    )


def problem_of(error: LatchError) -> Problem:
    """An error of the engine as an answer."""
    facts: dict[str, Any] = {"ttl_remaining": error.ttl_remaining, "reason": error.reason}
    match error:
        case LatchNotHeld():
            return not_holder(error.name or "", error.reason or "missing")
        case LatchBusy():
            return Problem("busy", str(error), retry_after=pause(error), **facts)
        case LatchQueueFull():
            return Problem("queue_full", str(error), retry_after=pause(error), **facts)
        case LatchTimeout():
            return Problem(
                "timeout",
                str(error),
                retry_after=pause(error),
                position=error.position,
                waited=error.waited,
                **facts | {"advice": _advice(error)},
            )
        case LatchDeadlock():
            cycle = error.args[1].get("cycle")
            return Problem("deadlock", str(error), cycle=cycle, **facts)
        case LatchNotAcquired():  # the token has ended meanwhile
            return not_holder(error.name or "", error.reason or "missing")
    return unavailable(error.reason, "corrupt" if error.reason == "corrupt" else "unavailable")


def pause(error: LatchError) -> int:
    """Whole seconds after which asking again makes sense."""
    return max(1, min(math.ceil(error.ttl_remaining or 1), PAUSE))


def _advice(error: LatchTimeout) -> str | None:
    if error.position == 1:
        return "The holder did not release in this time. Wait longer, or look whether it works."
    if error.position:
        return "Others wait before you. Wait longer, or shard the work over several keys."
    return None
