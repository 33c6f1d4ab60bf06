"""Who holds a lock: the facts written beside the token, and what they prove."""

from __future__ import annotations

import json
import os
import socket
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

#: Longest text of one field, and of the whole record, in characters.
FIELD: Final = 255
RECORD: Final = 8192

#: Most levels of `meta`: what reads it goes down level by level, and must reach the bottom.
LEVELS: Final = 16


def clean(text: object, limit: int = FIELD) -> str:
    """`text` on one bounded line without control and format characters, for people to see."""
    shown = (
        c if c.isprintable() or unicodedata.category(c) == "Zs" else "\ufffd"
        for c in str(text)[:limit]
    )
    line = "".join(shown)
    return line if len(str(text)) <= limit else line[:-1] + "…"


def is_flat(value: object, levels: int = LEVELS) -> bool:
    """Whether containers stand at most so many levels deep in one another."""
    if not isinstance(value, Mapping | list | tuple):
        return True
    within = value.values() if isinstance(value, Mapping) else value
    return levels > 0 and all(is_flat(each, levels - 1) for each in within)


def _proc(path: str) -> str:
    """A fact of /proc, or "" where the system has none: then nothing is ever proved by it."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


@cache
def boot_id() -> str:
    """Identity of this boot of this machine; "" where unknown."""
    return _proc("/proc/sys/kernel/random/boot_id")


def pid_namespace() -> str:
    """Identity of the pid namespace of this process; "" where unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_started(pid: int) -> int | None:
    """Start of process `pid` in clock ticks since boot: 0 for a zombie, None where unknown."""
    # The command name, in parentheses, may itself hold spaces and parentheses.
    rest = _proc(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(rest) < 20:
        return None
    return 0 if rest[0] in "ZX" else int(rest[19])  # a zombie runs nothing any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The holder's facts. Written by user code and other versions: bounded, and never trusted."""

    label: str = ""
    task: str = ""
    task_id: str = ""
    worker: str = ""
    host: str = ""
    pid: int = 0
    boot_id: str = ""
    pid_ns: str = ""
    started: int = 0
    root_id: str = ""
    parent_id: str = ""
    retries: int = 0
    args: str = ""
    agent: str = ""
    meta: Mapping[str, Any] | None = None

    @classmethod
    def here(cls, **more: Any) -> Owner:
        """An owner with the facts of this process, and `more`."""
        return cls(**{**_here(os.getpid()), **more})

    def to_json(self) -> str:
        """Compact JSON of the fields that are set, each text bounded."""
        return _written({key: getattr(self, key) for key in _FIELDS})

    @classmethod
    def from_json(cls, text: str) -> Owner:
        """Read a record; what cannot be read becomes the label, so a page shows it and goes on."""
        try:
            facts = json.loads(text)
            known = {f.name: {"int": int, "str": str}.get(str(f.type), dict) for f in fields(cls)}
            sound: dict[str, Any] = {
                key: value
                for key, value in facts.items()
                if key in known and isinstance(value, known[key]) and is_flat(value)
            }
            return cls(**sound)
        except (ValueError, AttributeError, TypeError, RecursionError):
            return cls(label=clean(text))

    def as_dict(self) -> dict[str, Any]:
        """The fields that are set, as JSON-safe values on one clean line each."""
        return {
            key: clean(value, 1024) if isinstance(value, str) else value
            for key, value in ((f.name, getattr(self, f.name)) for f in fields(self))
            if value
        }

    def describe(self) -> str:
        """One bounded line for people: ``billing.sync on worker1@host (pid 12)``."""
        who = self.label or self.task or "a process"
        where = self.worker or self.host
        return clean(
            who + (f" on {where}" if where else "") + (f" (pid {self.pid})" if self.pid else "")
        )

    def provably_dead(self) -> bool:
        """Whether the holder's process is known to be gone.

        Only a process of the same boot and pid namespace can be judged: elsewhere, and wherever
        the facts are missing, the answer is False and only the lease decides.
        """
        if not (self.pid and self.started and self.boot_id and self.pid_ns):
            return False
        if (self.boot_id, self.pid_ns) != (boot_id(), pid_namespace()):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it lives, under another user
            pass
        started = process_started(self.pid)  # another start: the pid was used again
        return started is not None and started != self.started


def record(label: str, *, process: bool = True, **more: Any) -> str:
    """What `Owner.here(label=label, **more).to_json()` writes, in a fraction of the time.

    Parameters:
        label: as the field, not empty.
        process: False where no process has the lock, so that nobody may conclude from the death
            of one that it is free: then only the host is named.
        **more: further fields, none of those that `Owner.here` knows.
    """
    return _written({"label": label, **more}, _here_text(os.getpid(), process))


_FIELDS: Final = tuple(field.name for field in fields(Owner))
_dumps: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode
_quote: Final = json.encoder.encode_basestring_ascii


def _written(facts: Mapping[str, Any], end: str = "}") -> str:
    """JSON of the facts that are set, each text bounded, with this end."""
    # Field by field, for that is quicker than one encoding of a small dict.
    told = {
        key: f'"{key}":{_quote(value if key == "args" else value[:FIELD])}'
        if isinstance(value, str)
        else f'"{key}":{_dumps(value)}'
        for key, value in facts.items()
        if value
    }
    text = "{" + ",".join(told.values()) + end
    if len(text) > RECORD:
        kept = [fact for key, fact in told.items() if key not in ("args", "meta")]
        text = "{" + ",".join(kept) + end
    return text


@cache
def _here(pid: int) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "pid": pid,
        "boot_id": boot_id(),
        "pid_ns": pid_namespace(),
        "started": process_started(pid) or 0,
    }


@cache
def _here_text(pid: int, process: bool) -> str:
    """The end of a JSON object with these facts."""
    here = _here(pid) if process else {"host": socket.gethostname()}
    return "," + _dumps({key: value for key, value in here.items() if value})[1:]
