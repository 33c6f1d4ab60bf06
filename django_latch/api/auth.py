"""Who asks: the functions that ``DJANGO_LATCH["HTTP"]["AUTHENTICATORS"]`` may name.

An authenticator is an async function of the request. It returns an `Account`, or None if the
request has no credentials of its kind; it raises a `Problem` if they are wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final, cast

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string

from django_latch.api.accounts import EVERYTHING, Account, Right
from django_latch.api.lookups import account_of
from django_latch.api.problems import Problem
from django_latch.conf import conf
from django_latch.core.owner import clean

Authenticator = Callable[[HttpRequest], Awaitable[Account | None]]

#: What asks the client for credentials.
CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="locks"'}

#: Longest user name that stands before a label; a longer one gives way to the primary key.
NAME: Final = 50


async def authenticate(request: HttpRequest) -> Account:
    """Ask the authenticators in their order.

    Raises:
        Problem: `unauthenticated`: none of them knows who asks, or there is none.
    """
    for path in conf.http.authenticators:
        account = await _authenticator(path)(request)
        if account is not None:
            return account
    raise unauthenticated("The request says not who asks.")


@cache
def _authenticator(path: str) -> Authenticator:
    return cast("Authenticator", import_string(path))


def unauthenticated(detail: str) -> Problem:
    """The answer to wrong or missing credentials."""
    return Problem("unauthenticated", detail, headers=CHALLENGE)


async def bearer(request: HttpRequest) -> Account | None:
    """``Authorization: Bearer <token>`` with a token of `ApiToken`."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    account = await account_of(secret.strip())
    if account is None:
        raise unauthenticated("This API token is unknown or revoked.")
    return account


async def login(request: HttpRequest) -> Account | None:
    """Django's own login: a session, its CSRF token, and the permissions of the locks.

    `view_activelock` gives the right to read, `release_activelock` beside it every other one.
    """
    if not hasattr(request, "auser"):
        return None
    user = await request.auser()
    if not (user.is_authenticated and user.is_active):
        return None
    refused = await sync_to_async(_csrf)(request)
    if refused is not None:
        raise Problem("forbidden", "The CSRF token is missing or wrong.")
    rights = set[Right]()
    if await sync_to_async(user.has_perm)("django_latch.view_activelock"):
        rights.add("read")
        if await sync_to_async(user.has_perm)("django_latch.release_activelock"):
            rights |= {"write", "force"}
    name = user.get_username()
    # The second form is nobody's name: Django's user names hold no number sign.
    who = f"user:{name}" if len(name) <= NAME else f"user#{user.pk}"
    return Account(clean(who), (EVERYTHING,), frozenset(rights))


def _csrf(request: HttpRequest) -> HttpResponse | None:
    """Django's CSRF check, for views that are exempt where another authenticator answers."""
    check = CsrfViewMiddleware(lambda _: HttpResponse())
    check.process_request(request)
    return cast("HttpResponse | None", check.process_view(request, _checked, (), {}))


def _checked(request: HttpRequest) -> HttpResponse:
    """A view that is not exempt."""
    return HttpResponse()
