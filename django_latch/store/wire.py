"""How a script call is put on the wire: the hot path, kept in one place.

A script call has some thirty arguments, most of them the same from call to call. Packing them
here costs a fraction of what the client library's general packer takes.
"""

from __future__ import annotations

from collections.abc import Iterable


def pack(args: Iterable[str | int | bytes]) -> bytes:
    """The arguments as RESP bulk strings; a key that is no UTF-8 as it was read by `repair`."""
    parts = []
    for arg in args:
        raw = arg if isinstance(arg, bytes) else str(arg).encode("utf-8", "surrogateescape")
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def command(count: int, *packed: bytes) -> bytes:
    """A command of `count` arguments from packed pieces."""
    return b"*%d\r\n%b" % (count, b"".join(packed))
