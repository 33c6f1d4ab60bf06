"""What redis-py raises, told apart: no connection, no answer, a refusal, a key of a wrong type."""

from __future__ import annotations

import redis.exceptions as redis_errors

from django_latch.core.calls import StoreError
from django_latch.core.owner import clean
from django_latch.core.replies import BadReply

#: The server's error word -> our reason, for replies that say the script was not run.
REFUSALS = {
    "NOAUTH": "auth",
    "WRONGPASS": "auth",
    "NOPERM": "auth",
    "OOM": "oom",
    "READONLY": "readonly",
    "LOADING": "loading",
    "MASTERDOWN": "readonly",
    "CLUSTERDOWN": "readonly",
    "BUSY": "timeout",
}


def is_wrong_type(error: Exception) -> bool:
    """Whether a key of ours holds something else."""
    text = str(error)
    return "WRONGTYPE" in text or "wrong kind of value" in text or "LATCHCORRUPT" in text


def store_error(error: Exception, *, sent: bool) -> StoreError:
    """Translate what redis-py raised.

    Parameters:
        error: an exception of redis-py or the socket, or BadReply.
        sent: whether the call had begun to go out.
    """
    # The server's own words only: never the command, which holds a token.
    problem = f"{type(error).__name__}: {clean(error)}"
    if isinstance(error, BadReply):
        return StoreError(problem, reason="reply", unanswered=True, again=True)
    if isinstance(error, (redis_errors.AuthenticationError, redis_errors.AuthorizationError)):
        return StoreError(problem, reason="auth", unanswered=False, again=False)
    if isinstance(error, (redis_errors.ResponseError, redis_errors.BusyLoadingError)):
        known = {
            redis_errors.OutOfMemoryError: "oom",
            redis_errors.NoPermissionError: "auth",
            redis_errors.ReadOnlyError: "readonly",
        }
        words = set(str(error).replace(":", " ").split())
        reason = next((r for kind, r in known.items() if isinstance(error, kind)), None) or next(
            (r for word, r in REFUSALS.items() if word in words), "refused"
        )
        if isinstance(error, redis_errors.BusyLoadingError):
            reason = "loading"
        # A demoted primary answers READONLY: a new connection finds the new one.
        return StoreError(problem, reason=reason, unanswered=False, again=reason == "readonly")
    if isinstance(error, (redis_errors.TimeoutError, TimeoutError)):
        return StoreError(problem, reason="timeout", unanswered=sent, again=sent)
    return StoreError(problem, reason="connection", unanswered=sent, again=sent)
