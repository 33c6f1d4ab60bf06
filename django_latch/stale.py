"""Freeing what is provably dead, and repairing keys of ours that hold something else."""

from __future__ import annotations

from dataclasses import dataclass, field

from django_latch import inventory
from django_latch.core import verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import unavailable
from django_latch.core.owner import Owner
from django_latch.exceptions import LatchCorrupt, LatchNotHeld
from django_latch.store.base import Store
from django_latch.store.connections import store


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
        return [*_repaired(at, dry_run), *_settled(at, dry_run), *_dead(dry_run, actor, using)]
    except StoreError as error:
        raise unavailable("", error) from error


def _repaired(at: Store, dry_run: bool) -> list[Cleared]:
    """Keys of a wrong type go; unreadable records go; keys without an end get one."""
    problems = at.repair(dry_run=dry_run)
    return [Cleared(name=name, what="repaired", detail=problem) for name, problem in problems]


def _settled(at: Store, dry_run: bool) -> list[Cleared]:
    """Locks whose lease has passed, and locks the index does not list."""
    try:
        listed = set(at.call(verbs.names(0, -1)))
    except LatchCorrupt:
        if not dry_run:  # a dry run has repaired nothing above
            raise
        listed = set()
    done = []
    for name in sorted(listed | at.recorded()):
        try:
            listing = at.call(verbs.read(name))
            empty = not listing.holders and not listing.waiters
            if empty != (name in listed):
                continue  # free and unlisted, or held and listed: in order
            if not dry_run:
                at.call(verbs.trim(name))
        except LatchCorrupt:
            if not dry_run:
                raise
            continue  # named above
        what = "expired" if empty else "repaired"
        done.append(Cleared(name=name, what=what, detail="" if empty else "was not in the index"))
    return done


def _dead(dry_run: bool, actor: str, using: str | None) -> list[Cleared]:
    """Locks held by a process that is gone."""
    done = []
    try:
        locks, _ = inventory.scan(using=using)
    except LatchCorrupt:
        if not dry_run:
            raise
        return []
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
