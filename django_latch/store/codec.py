"""How values are written: as the cache alias writes its own, or pickled where there is none."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_redis.client import DefaultClient


class AliasCodec:
    """The serializer and compressor of a django-redis alias.

    Parameters:
        client: of the alias.
    """

    def __init__(self, client: DefaultClient) -> None:
        self._encode = client.encode
        self._decode = client.decode

    def encode(self, value: Any) -> bytes:
        """The bytes of a value."""
        raw = self._encode(value)
        return raw if isinstance(raw, bytes) else str(raw).encode()  # integers are written plainly

    def decode(self, raw: bytes) -> Any:
        """The value of such bytes."""
        return self._decode(raw)


class PickleCodec:
    """For values in the memory of one process: what a reader gets is a copy."""

    def encode(self, value: Any) -> bytes:
        """The bytes of a value."""
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def decode(self, raw: bytes) -> Any:
        """The value of such bytes."""
        return pickle.loads(raw)  # noqa: S301  written by this process
