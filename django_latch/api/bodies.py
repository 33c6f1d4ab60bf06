"""Bodies: read within bounds, and checked field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, NoReturn

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, RawPostDataException, UnreadablePostError

from django_latch.api.problems import Problem, invalid
from django_latch.arguments import META, PERMITS, is_meta
from django_latch.core.owner import LEVELS
from django_latch.core.tokens import check_token
from django_latch.exceptions import LatchValueError

#: Most bytes of a body.
BODY: Final = 16 * 1024

#: Most characters of a client's own label, and of the reason for a release by force.
LABEL: Final = 190
REASON: Final = 500

#: Shortest lease in seconds: a shorter one may end before its answer arrives.
TTL: Final = 0.1

#: Returns the value to use; raises ValueError with what it must be.
Check = Callable[[Any], Any]


def fields(request: HttpRequest, known: Mapping[str, Check]) -> dict[str, Any]:
    """The fields of a JSON body; an empty body has none.

    Raises:
        Problem: `too_large`; or `invalid_request` with a JSON pointer to each faulty field.
    """
    body = _object(_read(request))
    errors, sound = dict[str, str](), dict[str, Any]()
    for name, value in body.items():
        check = known.get(name)
        pointer = "/" + name[:80].replace("~", "~0").replace("/", "~1")
        if check is None:
            errors[pointer] = f"is not a field of this request; known are {', '.join(known)}"
            continue
        try:
            sound[name] = check(value)
        except ValueError as error:
            errors[pointer] = str(error)
    if errors:
        raise invalid("invalid_request", errors)
    return sound


def _read(request: HttpRequest) -> bytes:
    length = request.META.get("CONTENT_LENGTH") or "0"
    try:
        body = b"" if length.isdecimal() and int(length) > BODY else request.body
    except RequestDataTooBig:
        body = b"." * (BODY + 1)
    except RawPostDataException:  # the CSRF check has looked for its token in a form
        raise invalid("invalid_request", {"": "the body is a form, and must be JSON"}) from None
    except UnreadablePostError:
        raise invalid("invalid_request", {"": "the body could not be read"}) from None
    if len(body) > BODY or (length.isdecimal() and int(length) > BODY):
        raise Problem("too_large", f"A body has at most {BODY} bytes.")
    return body


def _object(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise invalid("invalid_request", {"": f"the body is not JSON: {told:.200}"}) from None
    if not isinstance(value, dict):
        raise invalid("invalid_request", {"": "the body must be a JSON object"})
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.40} is too large")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


# Checks


def duration(least: float, most: float) -> Check:
    """Seconds."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number of seconds")
        if not least <= value <= most:
            raise ValueError(f"must be from {least:g} to {most:g} seconds")
        return float(value)

    return check


def whole(least: int, most: int) -> Check:
    """A whole number; 3.0 is one, as in JSON Schema."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError("must be a whole number")
        if not least <= value <= most:
            raise ValueError(f"must be from {least} to {most}")
        return int(value)

    return check


def text(most: int, least: int = 0) -> Check:
    """A text that can be stored."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a text")
        if not least <= len(value) <= most:
            raise ValueError(f"must have {least} to {most} characters")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("holds half a character (a lone surrogate)") from None
        return value

    return check


def boolean(value: Any) -> bool:
    """A JSON boolean."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def token(value: Any) -> str:
    """A token of the client's own, long enough to be a secret."""
    try:
        return check_token(value)
    except LatchValueError as error:
        raise ValueError(str(error)) from None


def meta(value: Any) -> dict[str, Any]:
    """An object of a bounded size and depth."""
    if not is_meta(value):
        raise ValueError(f"must be an object of at most {META} bytes and {LEVELS} levels")
    found: dict[str, Any] = value
    return found


def acquire_fields(max_ttl: float, max_timeout: float) -> Mapping[str, Check]:
    """What an acquire may say; see the settings for the bounds."""
    return {
        "ttl": duration(TTL, max_ttl),
        "timeout": duration(0, max_timeout),
        "token": token,
        "renew": boolean,
        "owner": text(LABEL),
        "meta": meta,
        "limit": whole(1, PERMITS),
    }


#: What a release may say. A token that cannot be one is no bad request: it holds nothing.
RELEASE_FIELDS: Final[Mapping[str, Check]] = {
    "token": text(512),
    "force": boolean,
    "reason": text(REASON, least=1),
    "fence": whole(1, 2**63 - 1),
}
