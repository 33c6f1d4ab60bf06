"""What sync and async stores share: how a call is packed, and what its reply means."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, TypeVar

import redis.exceptions as redis_errors

from django_latch.conf import Settings, conf
from django_latch.core import snapshot
from django_latch.core.calls import Call, Glance
from django_latch.core.replies import BadReply, text
from django_latch.core.timing import milliseconds
from django_latch.exceptions import LatchCorrupt
from django_latch.store import wire
from django_latch.store.base import EVENT_LEVELS
from django_latch.store.errors import is_wrong_type, store_error
from django_latch.store.layout import Layout
from django_latch.store.scripts import KEYS, OF_BUCKET, script

T = TypeVar("T")

#: Seconds for connecting and for one command, where the alias sets none.
TIMEOUT: Final = 5.0

#: How many packed heads of calls are kept ready.
HEADS: Final = 1024

#: Asks for the server's clock.
CLOCK: Final = wire.command(1, wire.pack(("TIME",)))

#: How many arguments a head has and, packed, what stands between the places for the lock's name.
Head = tuple[int, list[bytes]]

#: Commands to run, whose replies are sent back.
Asking = Generator[tuple[str | int, ...], Any, T]


class WrongType(Exception):
    """A call met a key of ours that holds something else."""


class Exchange:
    """Packs calls and reads replies.

    Parameters:
        layout: the keys.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._heads: tuple[Settings | None, dict[Any, Head]] = (None, {})

    def packed(self, call: Call[Any], verb: str = "EVALSHA") -> bytes:
        """A script call for the wire; `verb` EVAL sends the script's text."""
        settings = conf.load()
        valid, heads = self._heads
        if valid is not settings or len(heads) > HEADS:
            heads = {}
            self._heads = settings, heads
        name = call.name.encode("utf-8")
        # The heads of names of one length differ in nothing else.
        known = (call.verb, len(name), call.others, call.args, verb)
        head = heads.get(known)
        if head is None:
            head = heads[known] = self._head(call, b"\0" * len(name), verb, settings)
        return wire.command(head[0] + len(call.own), name.join(head[1]), wire.pack(call.own))

    def _head(self, call: Call[Any], blank: bytes, verb: str, settings: Settings) -> Head:
        """The arguments that are the same from call to call, but for the name.

        Parameters:
            blank: stands for the name. Nothing else in a head has a NUL: names and prefixes may
                not, and JSON escapes it.
        """
        code, name = script(call.verb), blank.decode()
        keys = self.layout.keys(name)
        for other in call.others:
            keys += self.layout.keys(other)[OF_BUCKET:]
        args = (
            verb,
            code.sha if verb == "EVALSHA" else code.text,
            len(keys),
            *keys,
            milliseconds(settings.grace),
            EVENT_LEVELS[settings.events],
            settings.events_max,
            name,
            milliseconds(settings.live),
            *call.args,
        )
        packed = wire.pack(args)
        return len(args), packed.split(blank) if blank else [packed]

    @staticmethod
    def unknown(replies: Sequence[object]) -> list[int]:
        """Which replies say that the server does not know the script."""
        return [
            i for i, reply in enumerate(replies) if isinstance(reply, redis_errors.NoScriptError)
        ]

    @staticmethod
    def outcome(call: Call[T], reply: object) -> T:
        """What the reply means.

        Raises:
            StoreError: nothing usable.
            WrongType: ask `corrupt` which key it is.
        """
        if isinstance(reply, Exception):
            if is_wrong_type(reply):
                raise WrongType(call.name) from reply
            raise store_error(reply, sent=True) from reply
        try:
            return call.parse(reply)
        except BadReply as error:
            raise store_error(error, sent=True) from error

    def glancing(self, glance: Glance) -> bytes:
        """The two commands that read a snapshot's value and the server's clock."""
        key = self.layout.key("S", glance.name)
        return CLOCK + wire.command(4, wire.pack(("HMGET", key, "m", glance.field)))

    def glanced(self, glance: Glance, replies: Sequence[object]) -> snapshot.Seen | None:
        """What they answer; see `Glance`.

        Raises:
            StoreError, LatchCorrupt: nothing usable.
        """
        for reply in replies:
            if isinstance(reply, Exception):
                if is_wrong_type(reply):
                    key = self.layout.key("S", glance.name)
                    raise corrupt(key, "holds something else", name=glance.name) from reply
                raise store_error(reply, sent=True) from reply
        try:
            return snapshot.glanced(*replies)
        except BadReply as error:
            raise store_error(error, sent=True) from error

    def watching(self, streams: Sequence[tuple[str, str]], left: float) -> bytes:
        """The command that waits for news of snapshots, for so many seconds.

        Parameters:
            streams: names, with what was last known of each.
        """
        keys = [self.layout.news(name) for name, _ in streams]
        known = [at for _, at in streams]
        args: list[str | int] = ["XREAD", "BLOCK", milliseconds(left), "STREAMS", *keys, *known]
        return wire.command(len(args), wire.pack(args))

    def corrupt(self, call: Call[Any]) -> Asking[LatchCorrupt]:
        """Find the key of a call that is not what it should be."""
        for name in (call.name, *call.others):
            kinds = list(zip(KEYS, self.layout.keys(name), strict=True))
            if call.verb.startswith("snapshot") or call.args[:1] == ("snapshots",):
                kinds += self.layout.snapshot_keys(name)
            for kind, key in kinds:
                expected = self.layout.type_of(kind)
                found = text((yield "TYPE", key))
                if found not in ("none", expected):
                    return corrupt(key, f"is a {found} where a {expected} belongs", name=name)
        records = self.layout.keys(call.name)[KEYS.index("R")]
        return corrupt(records, "holds a record that cannot be read", name=call.name)


def silent_fence(woken: object) -> int:
    """The fence that a BLPOP's message names beside its token, or 0."""
    if not isinstance(woken, (list, tuple)) or len(woken) < 2:
        return 0
    message = woken[1]
    if isinstance(message, bytes) and b" " not in message:  # as nearly all
        return 0
    return int(text(message).partition(" ")[2] or 0)


def corrupt(key: str, problem: str, *, name: str = "") -> LatchCorrupt:
    """The error for a key that holds something else."""
    return LatchCorrupt(
        f"the key {key!r} {problem}; `manage.py latch_clear --stale` repairs it",
        name=name,
        reason="corrupt",
    )
