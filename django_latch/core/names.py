"""Lock names: which are allowed, how a generated one is made to fit, and the bucket of a name."""

from __future__ import annotations

import hashlib
import re
import zlib

from django_latch.exceptions import LatchNameError

MAX_LENGTH = 255
SHOWN_LENGTH = 60
DIGEST_BYTES = 16

# For a character class of a regular expression: control characters, the line and paragraph
# separators (terminals and logs break lines there), and surrogates, which UTF-8 cannot encode.
UNPRINTABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_FORBIDDEN = re.compile(rf"[{{}}{UNPRINTABLE}]")


def check_name(name: str) -> str:
    """Return ``name`` as a plain ``str`` if it may name a lock.

    Parameters:
        name: 1 to 255 characters of any script, without control characters, ``{`` and ``}``.

    Raises:
        LatchNameError: anything else; the message shows the start of the name and the remedy.
    """
    text = check_characters(name)
    if not text:
        raise LatchNameError("a lock's name must not be empty")
    if len(text) > MAX_LENGTH:
        raise LatchNameError(
            f"a lock's name has at most {MAX_LENGTH} characters, {shown(text)} has {len(text)}: "
            "shorten it, for instance by a digest of its long part"
        )
    return text


def check_characters(text: str) -> str:
    """Return ``text`` as a plain ``str`` if each of its characters may stand in a name.

    Raises:
        LatchNameError: a brace, a control character or a lone surrogate; or no ``str`` at all.
    """
    text = plain_text(text)
    found = _FORBIDDEN.search(text)
    if found is None:
        return text
    if found[0] in "{}":
        raise LatchNameError(
            f"a lock's name must not contain {{ or }}: {shown(text)}; an f-string without its f?"
        )
    raise LatchNameError(
        "a lock's name must not contain control characters or lone surrogates: "
        f"{shown(text)} has U+{ord(found[0]):04X} at position {found.start()}; remove it"
    )


def plain_text(text: object) -> str:
    """Return the text of a ``str`` or of a subclass: a str Enum would format as its member's name.

    Raises:
        LatchNameError: it is no ``str``.
    """
    if not isinstance(text, str):
        raise LatchNameError(f"a lock's name must be a str, not {type(text).__name__}")
    return str.__str__(text)


def fit_name(name: str) -> str:
    """Return ``name``, cut and completed by a digest of the whole if it is too long.

    Names of 255 characters or fewer come back unchanged, so the result of ``fit_name`` can be
    used wherever a name is asked for and means the same lock.

    Parameters:
        name: a generated name of any length.

    Raises:
        LatchNameError: the name is empty or has characters that no name may have.
    """
    text = check_characters(name)
    if len(text) > MAX_LENGTH:
        digest = hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
        text = f"{text[: MAX_LENGTH - len(digest) - 1]}~{digest}"
    return check_name(text)


def bucket(name: str, count: int) -> int:
    """Return the bucket of ``name``: a number from 0 to ``count - 1``, the same everywhere."""
    return zlib.crc32(name.encode()) % count


def percent_encode(text: str, unsafe: re.Pattern[str]) -> str:
    """Replace each match of ``unsafe`` by its UTF-8 bytes as ``%XX``.

    No two texts meet as long as ``unsafe`` matches ``%``.
    """
    return unsafe.sub(_percent, text)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def shown(text: str) -> str:
    """Return ``text`` as error messages show it: quoted, escaped and of bounded length."""
    return repr(text) if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]!r}..."
