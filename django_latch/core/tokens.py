"""The secret that proves ownership, and what may be shown of it."""

from __future__ import annotations

import hashlib
import os


def new_token() -> str:
    """A fresh secret: 128 random bits, never from a counter that a fork would copy."""
    return os.urandom(16).hex()


def fingerprint(token: str) -> str:
    """The first 8 hex digits of the token's SHA-256: names a lease and proves nothing."""
    return hashlib.sha256(token.encode()).hexdigest()[:8]
