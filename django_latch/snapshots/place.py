"""What every call on a snapshot needs to know, made once for as long as nothing changes."""

from __future__ import annotations

import logging
import os
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django_latch.snapshots.outage import Outage

if TYPE_CHECKING:
    from django_latch.conf import Settings
    from django_latch.core.snapshot import Seen, Wanted
    from django_latch.snapshots.options import Options
    from django_latch.store.base import Store

logger = logging.getLogger("django_latch")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A snapshot at its store.

    Attributes:
        label: its name as given, with the tenant.
        settings: those it was made under.
        owner: who asks, as records have it.
    """

    label: str
    settings: Settings = field(repr=False)
    wanted: Wanted
    options: Options
    store: Store
    outage: Outage
    owner: str = field(repr=False)

    def decode(self, raw: bytes) -> Any:
        """The value of such bytes."""
        return self.store.codec.decode(raw)

    def decoded(self, seen: Seen) -> tuple[Any, Seen]:
        """What was read, and its value; bytes that cannot be read are none."""
        if seen.value is None:
            return None, seen
        try:
            return self.decode(seen.value), seen
        except Exception as error:  # noqa: BLE001  whatever the serializer raises
            logger.warning("%r holds a value that cannot be read: %r", self.wanted.name, error)
            return None, replace(seen, state="miss", fence=0, age=0, left=0, took=0, value=None)

    @property
    def key(self) -> tuple[int, str]:
        """What it is called among all stores of this process."""
        return id(self.store), self.wanted.name


_outages: weakref.WeakKeyDictionary[Any, Outage] = weakref.WeakKeyDictionary()


def outage_of(store: Store) -> Outage:
    """What this process knows of the outages of a store."""
    return _outages.get(store) or _outages.setdefault(store, Outage(store.patience))


# What a child inherits may be locked by a thread that it has not.
os.register_at_fork(after_in_child=_outages.clear)
