"""What all views share: who asks, which method, and errors as problems."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse

from django_latch.api.accounts import Account, Right
from django_latch.api.auth import authenticate
from django_latch.api.keys import check_key
from django_latch.api.problems import Problem, invalid, problem_of, unavailable
from django_latch.exceptions import LatchError

logger = logging.getLogger("django_latch")

#: Answers hold secrets and are old at once.
HEADERS: Final = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose account and key are known and go together."""

    request: HttpRequest
    account: Account
    key: str


#: Takes the request, returns the members of the answer.
Handler = Callable[[Asked], Awaitable[dict[str, Any]]]


def needs(right: Right) -> Callable[[Handler], Handler]:
    """Mark what an account must be allowed for this handler."""

    def mark(handler: Handler) -> Handler:
        handler.right = right  # type: ignore[attr-defined]
        return handler

    return mark


def endpoint(**methods: Handler) -> Callable[..., Coroutine[Any, Any, HttpResponse]]:
    """A view with a handler for each method; without any, the key is never valid."""
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]

    async def view(request: HttpRequest, key: str | None = None) -> HttpResponse:
        try:
            response: HttpResponse = JsonResponse(await _answer(request, key, methods))
        except Problem as problem:
            response = problem.response(key)
        except LatchError as error:
            response = problem_of(error).response(key)
        except DatabaseError as error:
            logger.error("the API tokens cannot be read: %s", error)
            response = unavailable("database").response(key)
        except Exception:
            logger.exception("the HTTP API failed")
            response = Problem("internal", "The error is in the server's log.").response(key)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    view.csrf_exempt = True  # type: ignore[attr-defined]  # auth.login checks for itself
    return view


async def _answer(
    request: HttpRequest, key: str | None, methods: dict[str, Handler]
) -> dict[str, Any]:
    account = await authenticate(request)
    if not methods:
        raise invalid("invalid_key", {"key": "a key has 1-255 characters and holds no slash"})
    sound = "" if key is None else check_key(request, key)
    handler = methods.get(request.method or "")
    if handler is None:
        raise Problem(
            "method_not_allowed",
            f"{request.method} is not allowed here.",
            headers={"Allow": ", ".join(methods)},
        )
    account.require(handler.right, None if key is None else sound)  # type: ignore[attr-defined]
    return await handler(Asked(request, account, sound))
