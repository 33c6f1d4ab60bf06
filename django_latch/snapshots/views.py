"""Views that answer with snapshots: what is pending, and what is an outage, as HTTP says it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from asgiref.sync import iscoroutinefunction
from django.http import HttpResponse, JsonResponse

from django_latch.exceptions import LatchNotAcquired, LatchUnavailable
from django_latch.snapshots.outage import PAUSE
from django_latch.snapshots.results import Pending, Report

#: Seconds after which a client may ask again while the store is down.
RETRY_AFTER: Final = math.ceil(PAUSE)


def snapshot_view(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a view, sync or async, return a snapshot's value, as JSON.

    - A `Report` becomes its value, with its age in the header ``Age``; a response stays one.
    - `Pending`, and contention that was raised: 503 ``{"status": "PENDING"}`` and Retry-After.
    - An outage of the store, and nothing else: 503 ``{"status": "REDIS_DOWN", "error": reason,
      "checkedAt": time}`` and Retry-After.

    Other errors, such as those of the compute, are raised.
    """
    if iscoroutinefunction(view):

        @functools.wraps(view)
        async def aview(*args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return respond(await view(*args, **kwargs))
            except (LatchNotAcquired, LatchUnavailable) as error:
                return refuse(error)

        return aview

    @functools.wraps(view)
    def answer(*args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return respond(view(*args, **kwargs))
        except (LatchNotAcquired, LatchUnavailable) as error:
            return refuse(error)

    return answer


def respond(answer: Any) -> HttpResponse:
    """The response that says `answer`."""
    if isinstance(answer, HttpResponse):
        return answer
    value = answer.value if isinstance(answer, Report) else answer
    if isinstance(value, Pending):
        return _pending(value.retry_after)
    response = JsonResponse(value, safe=False)
    if isinstance(answer, Report):
        response["Age"] = str(int(answer.age))
    return response


def refuse(error: LatchNotAcquired | LatchUnavailable) -> HttpResponse:
    """The response that says why there is no value."""
    if isinstance(error, LatchNotAcquired):
        return _pending(getattr(error, "retry_after", 1))
    body = {
        "status": "REDIS_DOWN",
        "error": error.reason or "unavailable",
        "checkedAt": datetime.now(UTC).isoformat(),
    }
    return JsonResponse(body, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def _pending(retry_after: int) -> HttpResponse:
    headers = {"Retry-After": str(retry_after)}
    return JsonResponse({"status": "PENDING"}, status=503, headers=headers)
