"""The server's problems as the engine's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django_latch.exceptions import (
    LatchBusy,
    LatchCorrupt,
    LatchDeadlock,
    LatchError,
    LatchNameError,
    LatchNotAcquired,
    LatchNotHeld,
    LatchQueueFull,
    LatchTimeout,
    LatchUnavailable,
    LatchValueError,
)

_ERRORS: Final[Mapping[str, type[LatchError]]] = {
    "busy": LatchBusy,
    "timeout": LatchTimeout,
    "queue_full": LatchQueueFull,
    "deadlock": LatchDeadlock,
    "not_holder": LatchNotHeld,
    "not_found": LatchNotHeld,
    "too_many_locks": LatchNotAcquired,
    "too_many_waits": LatchNotAcquired,
    "unavailable": LatchUnavailable,
    "internal": LatchUnavailable,
    "corrupt": LatchCorrupt,
    "invalid_key": LatchNameError,
    "invalid_request": LatchValueError,
}

#: Members of a problem that become attributes of the error.
_FACTS: Final = ("waited", "position", "ttl_remaining", "retry_after", "waiters", "cycle")


def error_of(status: int, body: Mapping[str, Any]) -> LatchError:
    """The error for an answer that is none of success.

    A code that has no error of its own (`out_of_scope`, `unauthenticated`) is a plain
    LatchError whose `reason` is the code. What is no problem document comes from something
    between here and the server, and is an outage.
    """
    code = body.get("code")
    if code is None:
        return LatchUnavailable(f"the server answered {status}", reason="reply")
    known = _ERRORS.get(code, LatchError)
    facts = {name: body[name] for name in _FACTS if name in body}
    reason = body.get("reason") or body.get("error") or code
    return known(str(body.get("detail", code)), facts, name=body.get("key"), reason=reason)
