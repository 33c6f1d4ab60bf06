"""The Lua scripts, read from their files and named by their verb."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

#: Keys every script declares, in this order: see lua/_common.lua.
KEYS: Final = ("stamp", "index", "events", "due", "R", "Q", "V", "P", "L", "J")

#: How many of them belong to the bucket; the rest to the lock.
OF_BUCKET: Final = 4


@dataclass(frozen=True, slots=True)
class Script:
    """A script as it is sent."""

    verb: str
    text: str = field(repr=False)
    sha: str


@cache
def script(verb: str) -> Script:
    """The script of `verb`: the parts its header names, put before it as they are."""
    folder = files("django_latch") / "lua"
    own = (folder / f"{verb}.lua").read_text("utf-8")
    header = re.search(r"^-- PARTS *(.*)$", own, re.MULTILINE)
    if header is None:
        raise ValueError(f"lua/{verb}.lua has no PARTS line")
    parts = [(folder / f"{part}.lua").read_text("utf-8") for part in header[1].split()]
    text = "".join([*parts, own])
    return Script(verb, text, sha1(text.encode(), usedforsecurity=False).hexdigest())
