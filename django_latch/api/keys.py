"""The key of a request: taken from the path as it was sent."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from django.http import HttpRequest

from django_latch.api.problems import invalid
from django_latch.core.names import check_name
from django_latch.exceptions import LatchNameError

#: What clients and proxies resolve before they send a path.
DOTS: Final = (".", "..")


def check_key(request: HttpRequest, key: str) -> str:
    """Check a key.

    Parameters:
        key: decoded, as the route found it. Where the server also gives the raw path, that
            decides: ``a%2Frelease`` is a key with a slash, not the release of ``a``, and bytes
            that are not UTF-8 are no key at all.

    Raises:
        Problem: `invalid_key`.
    """
    raw = raw_path(request)
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise invalid("invalid_key", {"key": "must be UTF-8, percent-encoded"}) from None
    if "/" in key or b"%2f" in raw.lower():
        raise invalid("invalid_key", {"key": "a key holds no slash"})
    if key in DOTS:
        raise invalid("invalid_key", {"key": "clients take a path of dots for a way upwards"})
    try:
        return check_name(key)
    except LatchNameError as error:
        raise invalid("invalid_key", {"key": str(error)}) from None


def raw_path(request: HttpRequest) -> bytes:
    """The path before decoding; empty where the server does not tell."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        raw = scope.get("raw_path") or b""
        return bytes(raw).partition(b"?")[0]
    target = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    return target.partition("?")[0].encode("utf-8", "surrogateescape")
