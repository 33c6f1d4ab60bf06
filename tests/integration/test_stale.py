"""clear_stale frees what is provably dead, and nothing else."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
import redis

from django_latch import LatchBusy, LatchNotHeld, inventory, latch
from django_latch.core.owner import Owner, process_started
from django_latch.stale import clear_stale
from tests.integration import audit
from tests.integration.calls import A, grant
from tests.integration.programs import program
from tests.integration.until import until


def hold(**facts: object) -> None:
    grant(ttl=600, owner=Owner.here(**facts).to_json())


def stale(dry_run: bool = False) -> list[tuple[str, str]]:
    return [(each.name, each.what) for each in clear_stale(actor="t", dry_run=dry_run)]


HOLDER = """
latch("job", timeout=0, ttl=600).acquire()
say("held", os.getpid())
hear()
"""


def test_the_lock_of_a_killed_process_is_freed(raw: redis.Redis) -> None:
    with program(HOLDER) as holder:
        holder.expect("held", holder.pid)
        assert stale() == []
        holder.kill()
    assert stale(dry_run=True) == [("job", "dead")]
    with pytest.raises(LatchBusy):
        latch("job", timeout=0).acquire()
    (cleared,) = clear_stale(actor="an operator")
    assert (cleared.what, cleared.owner.pid) == ("dead", holder.pid)
    assert cleared.fence
    audit.assert_free(raw, "job")
    ((_, event),) = [e for e in audit.events(raw, "job") if e[0] == "cleared"]
    assert "an operator" in event["note"]
    with latch("job", timeout=0):
        pass


def test_the_lock_of_a_zombie_is_freed() -> None:
    """Dead, and its parent has not asked for its exit code yet."""
    with subprocess.Popen(["sleep", "60"]) as child:
        hold(pid=child.pid, started=process_started(child.pid))
        assert stale() == []
        child.kill()
        until(lambda: process_started(child.pid) == 0)
        assert stale() == [("job", "dead")]


def test_a_reused_process_id_is_no_living_holder() -> None:
    hold(pid=os.getpid(), started=1)
    assert stale() == [("job", "dead")]


@pytest.mark.parametrize(
    "facts",
    [
        {"boot_id": "another boot", "pid": 999_999_999},
        {"pid_ns": "another namespace", "pid": 999_999_999},
        {"boot_id": "", "pid": 999_999_999},
        {"pid_ns": "", "pid": 999_999_999},
        {"pid": 0},
        {"pid": 999_999_999, "started": 0},
        {"pid": os.getppid(), "started": process_started(os.getppid())},
        {},
    ],
    ids=repr,
)
def test_what_is_not_provably_dead_is_left_alone(facts: dict[str, object]) -> None:
    hold(**facts)
    assert stale() == []


def test_age_proves_nothing(raw: redis.Redis) -> None:
    hold()
    old = raw.hget(audit.key("R", "job"), A).split("|")
    old[7] = str(int(old[7]) - 10**9)  # held for eleven days
    raw.hset(audit.key("R", "job"), A, "|".join(old))
    assert stale() == []


def test_a_lease_that_was_detached_belongs_to_no_process() -> None:
    with program(
        """
        lease = latch("job", timeout=0, ttl=600).acquire()
        say(lease.detach())
        """
    ) as holder:
        token = holder.hear()
        holder.end()
    assert stale() == []
    latch("job", timeout=0).adopt(token).release()


def test_a_lease_that_has_passed_is_written_down(raw: redis.Redis) -> None:
    grant(ttl=0.03)
    time.sleep(0.04)
    assert stale() == [("job", "expired")]
    assert audit.kinds(raw, "job") == ["acquired", "expired"]
    audit.assert_nothing_held(raw)
    assert stale() == []


def test_a_held_lock_missing_in_the_index_is_listed_again(raw: redis.Redis) -> None:
    with latch("job", timeout=0):
        raw.delete(audit.key("index"))
        assert inventory.count() == 0
        assert stale() == [("job", "repaired")]
        assert [lock.name for lock in inventory.page(0, 9)] == ["job"]
        audit.assert_sound(raw)


def test_a_ghost_in_the_index_is_removed(raw: redis.Redis) -> None:
    raw.zadd(audit.key("index"), {"ghost": audit.now(raw) + 10**6})
    raw.pexpire(audit.key("index"), 10**6)
    assert stale() == [("ghost", "expired")]
    audit.assert_nothing_held(raw)


def test_clear_compares_the_lease(raw: redis.Redis) -> None:
    lease = latch("job", timeout=0).acquire()
    meant = {"fence": lease.fence, "fingerprint": lease.fingerprint}
    lease.release()
    with latch("job", timeout=0) as other:
        with pytest.raises(LatchNotHeld) as refused:
            inventory.clear("job", **meant, reason="stuck", actor="an operator")  # type: ignore[arg-type]
        assert refused.value.reason == "taken"
        other.ensure_held()
        assert audit.listed(raw, "job") == [other.token]


def test_a_cleared_holder_is_told_within_one_heartbeat(raw: redis.Redis) -> None:
    lease = latch("job", timeout=0, ttl=0.9).acquire()
    inventory.clear(
        "job", fence=lease.fence, fingerprint=lease.fingerprint, reason="stuck", actor="an operator"
    )
    begun = time.monotonic()
    while lease.lost is None:
        assert time.monotonic() < begun + 0.3 + 2
        time.sleep(0.005)
    assert lease.lost == "revoked"
    ((_, event),) = [e for e in audit.events(raw, "job") if e[0] == "cleared"]
    assert event["note"] == "an operator: stuck"


def test_expired_entries_of_others_are_cleared_a_few_at_each_acquire(raw: redis.Redis) -> None:
    for number in range(12):
        grant(name=f"old {number}", ttl=0.02)
    time.sleep(0.03)
    sizes = []
    for _ in range(6):
        latch("new", timeout=0).acquire().release()
        sizes.append(raw.zcard(audit.key("index")))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0
    for number in range(12):
        assert audit.kinds(raw, f"old {number}") == ["acquired", "expired"]


def test_looking_never_writes(raw: redis.Redis) -> None:
    with latch("job", timeout=0):
        grant(name="old", ttl=0.02)
        time.sleep(0.03)
        before = {found: raw.dump(found) for found in raw.keys("*")}
        inventory.count()
        inventory.page(0, 10)
        inventory.scan()
        inventory.get("job")
        inventory.get("old")
        clear_stale(actor="t", dry_run=True)
        assert {found: raw.dump(found) for found in raw.keys("*")} == before
