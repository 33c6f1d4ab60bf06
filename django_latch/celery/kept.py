"""``parent_heartbeat``: a prefork worker's main process renews the locks of its children too.

A child that sits in one long call into C code runs no thread, so its own heartbeat stands still.
What the parent has learned from the lock store it writes on a board, a piece of memory that both
have; without that the child would take a lock for lost which it has never ceased to hold.
"""

from __future__ import annotations

import logging
import mmap
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from celery.signals import worker_init

from django_latch.celery.impatient import PATIENCE
from django_latch.core import replies, verbs
from django_latch.core.calls import StoreError
from django_latch.core.timing import deadline, now
from django_latch.exceptions import LatchError
from django_latch.store.connections import store

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight

logger = logging.getLogger("django_latch")

#: Places on the board. Two runs that share one harm nobody: one of them finds nothing there.
PLACES: Final = 4096
#: A place: part of a run's token, and until when its lock is held, on the clock of `now`.
_ENTRY: Final = struct.Struct("=Qd")

_board: mmap.mmap | None = None


@worker_init.connect(dispatch_uid="django_latch.celery.kept", weak=False)
def prepare(**_: object) -> None:
    """Make the board, before the children are started."""
    global _board
    _board = _board or mmap.mmap(-1, PLACES * _ENTRY.size)


def kept_until(token: str) -> float:
    """Until when the parent has kept the lock of a run alive; 0 where it has not."""
    if _board is None:
        return 0.0
    place, mark = _place(token)
    found, until = _ENTRY.unpack_from(_board, place)
    return float(until) if found == mark else 0.0


def _place(token: str) -> tuple[int, int]:
    return int(token[:8], 16) % PLACES * _ENTRY.size, int(token[8:24], 16)


@dataclass(eq=False)
class Kept:
    """A lock that the parent renews.

    Parameters:
        name: the lock.
        token: of the run in the child.
        ttl: seconds.
    """

    name: str
    token: str = field(repr=False)
    ttl: float
    due: float = 0.0
    over: bool = False

    @classmethod
    def of(cls, flight: SingleFlight, name: str, token: str) -> Kept | None:
        """What the options of a task want to be kept; None for nothing."""
        if not flight.parent_heartbeat or flight.at == "enqueue":
            return None
        return cls(name, token, flight.lease_seconds)

    def renew(self) -> None:
        """Renew it and write on the board until when it is held.

        Raises:
            StoreError, LatchError: no usable answer.
        """
        sent = now()
        until = sent + min(PATIENCE, self.ttl / 3)
        answer = store().call(verbs.renew(self.name, self.token, None, self.ttl, until=until))
        self.due = sent + self.ttl / 3
        if isinstance(answer, replies.Renewed) and _board is not None:
            place, mark = _place(self.token)
            _ENTRY.pack_into(_board, place, mark, deadline(sent, answer.left))
        elif isinstance(answer, replies.Ended):
            # `missing`: the child has not asked for it yet.
            self.over = answer.reason != "missing"


def beat(kept: Iterable[Kept]) -> None:
    """Renew what is due.

    Parameters:
        kept: the locks of runs whose children live.
    """
    for one in kept:
        if one.over or one.due > now():
            continue
        try:
            one.renew()
        except (StoreError, LatchError) as error:
            logger.warning("could not renew %s for a child: %s", one.name, error)
            return
