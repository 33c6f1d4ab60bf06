"""The secret that proves ownership, and what may be shown of it."""

from __future__ import annotations

import hashlib
import os
import re

from django_latch.exceptions import LatchValueError

_FORM = re.compile(r"[A-Za-z0-9_-]{32,128}")


def new_token() -> str:
    """A fresh secret: 128 random bits, never from a counter that a fork would copy."""
    return os.urandom(16).hex()


def check_token(token: object) -> str:
    """A token made elsewhere: long enough to be a secret, and safe in lists and headers."""
    if not isinstance(token, str) or _FORM.fullmatch(token) is None:
        raise LatchValueError("a token must be 32-128 characters of [A-Za-z0-9_-]")
    return token


def fingerprint(token: str) -> str:
    """The first 8 hex digits of the token's SHA-256: names a lease and proves nothing."""
    return hashlib.sha256(token.encode()).hexdigest()[:8]
