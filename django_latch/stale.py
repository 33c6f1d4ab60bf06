"""Freeing what is provably dead, and repairing keys of ours that hold something else."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from django_latch import inventory
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import unavailable
from django_latch.core.owner import Owner
from django_latch.core.replies import Listing
from django_latch.exceptions import LatchCorrupt, LatchNotHeld
from django_latch.inventory import LockInfo
from django_latch.store.base import Store
from django_latch.store.connections import store

logger = logging.getLogger("django_latch")

#: Locks in one round trip.
BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """Something `clear_stale` did, or would do."""

    name: str
    what: str  # expired, dead or repaired
    fence: int | None = None
    owner: Owner = field(default_factory=Owner)
    detail: str = ""


def clear_stale(*, dry_run: bool = False, actor: str, using: str | None = None) -> list[Cleared]:
    """Free locks whose holder is provably dead, and put our keys in order.

    A lock is left alone unless its lease has passed, or its holder's process is known to be gone:
    a process of this machine, boot and pid namespace with no such pid. Age proves nothing.

    Parameters:
        dry_run: change nothing, only say what would be done.
        actor: by whom, for the events.

    Returns:
        What was done, in the order it was done.

    Raises:
        LatchUnavailable: the store gave no answer; what was done until then stays done.
    """
    at = store(using)
    try:
        done = _repaired(at, dry_run)
        listed = _listed(at, dry_run)
        names = sorted(listed | at.recorded())
        for begin in range(0, len(names), BATCH):
            found = _read(at, names[begin : begin + BATCH], dry_run)
            done += _settled(at, found, listed, dry_run)
            locks = [info for name in found if (info := inventory.lock_info(name, found[name]))]
            done += _dead(locks, dry_run, actor, using)
        return done
    except StoreError as error:
        raise unavailable("", error) from error


def _repaired(at: Store, dry_run: bool) -> list[Cleared]:
    """Keys of a wrong type go; unreadable records go; keys without an end get one."""
    problems = at.repair(dry_run=dry_run)
    return [Cleared(name=name, what="repaired", detail=problem) for name, problem in problems]


def _listed(at: Store, dry_run: bool) -> set[str]:
    """The names in the index, a part at a time: no command keeps the server for long."""
    names: set[str] = set()
    cursor = -1
    while cursor:
        try:
            cursor, part = at.call(verbs.scan(max(cursor, 0), BATCH))
        except LatchCorrupt:
            if not dry_run:  # a dry run has repaired nothing above
                raise
            break
        names.update(part)
    return names


def _read(at: Store, names: Sequence[str], dry_run: bool) -> dict[str, Listing]:
    """What is known of these locks, but for those that cannot be read."""
    outcomes = at.pipeline([verbs.read(name) for name in names])
    return {
        name: outcome
        for name, outcome in zip(names, outcomes, strict=True)
        if not _skipped(outcome, dry_run)
    }


def _skipped(outcome: object, dry_run: bool) -> bool:
    """Whether this outcome is passed over. Any error but that of one lock's own key is raised."""
    if isinstance(outcome, LatchCorrupt):
        if not dry_run:  # there it is named above; here it was broken since the repair
            logger.warning("%s", outcome)
        return True
    if isinstance(outcome, Exception):
        raise outcome
    return False


def _settled(
    at: Store, found: Mapping[str, Listing], listed: Set[str], dry_run: bool
) -> list[Cleared]:
    """Locks whose lease has passed, and locks the index does not list."""
    done = []
    for name, listing in found.items():
        empty = not listing.holders and not listing.waiters
        if empty == (name in listed):  # neither free and unlisted, nor held and listed
            what = "expired" if empty else "repaired"
            detail = "" if empty else "was not in the index"
            done.append(Cleared(name=name, what=what, detail=detail))
    if not dry_run and done:
        for outcome in at.pipeline([verbs.trim(cleared.name) for cleared in done]):
            _skipped(outcome, dry_run)
    return done


def _dead(locks: Iterable[LockInfo], dry_run: bool, actor: str, using: str | None) -> list[Cleared]:
    """Locks held by a process that is gone."""
    done = []
    for lock in locks:
        for holder in lock.holders:
            if holder.state != "held" or not holder.owner.provably_dead():
                continue
            try:
                if not dry_run:
                    inventory.clear(
                        lock.name,
                        fence=holder.fence,
                        fingerprint=holder.fingerprint,
                        reason="its process is gone",
                        actor=actor,
                        using=using,
                    )
            except LatchNotHeld:
                continue  # it ended by itself meanwhile
            done.append(
                Cleared(name=lock.name, what="dead", fence=holder.fence, owner=holder.owner)
            )
    return done
