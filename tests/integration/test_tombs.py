"""What is remembered of ended tokens, and that nothing grows without bound."""

from __future__ import annotations

import redis

from django_latch import latch
from django_latch.core import verbs
from django_latch.store.connections import store
from tests.integration import audit
from tests.integration.aliases import latch_settings

#: Tombs that only serve nicer replies: 32 are kept, and cut back when there are twice as many.
FEW = 64

#: Tombs of tokens whose copies may still be under way.
RESENT = 1000


def test_ordinary_tombs_are_few(raw: redis.Redis) -> None:
    most = 0
    for _ in range(200):
        latch("job", timeout=0).acquire().release()
        most = max(most, raw.zcard(audit.key("P", "job")))
    assert most <= FEW
    assert raw.zcard(audit.key("P", "job")) >= 32
    audit.assert_free(raw, "job")


def test_the_youngest_tombs_are_kept() -> None:
    tokens = [f"{number:040d}" for number in range(100)]
    for token in tokens:
        latch("job", timeout=0).acquire(token=token).release()
    reasons = [store().call(verbs.end("job", token, "released")).reason for token in tokens]
    assert reasons[-32:] == ["released"] * 32
    assert set(reasons) == {"never_held", "released"}


def test_tombs_of_resent_requests_last_through_many_ordinary_ones(raw: redis.Redis) -> None:
    late = "l" * 40
    store().call(verbs.end("job", late, "abandoned", resent=True))
    for _ in range(200):
        latch("job", timeout=0).acquire().release()
    assert audit.tombs(raw, "job")[late] == "abandoned"
    assert 60 - 5 < raw.pttl(audit.key("R", "job")) / 1000 <= 120


def test_tombs_of_resent_requests_are_bounded(raw: redis.Redis) -> None:
    tokens = [f"{number:040d}" for number in range(2 * RESENT + 50)]
    for start in range(0, len(tokens), 500):
        part = tokens[start : start + 500]
        store().pipeline([verbs.end("job", t, "abandoned", resent=True) for t in part])
    assert RESENT <= raw.zcard(audit.key("P", "job")) <= 2 * RESENT
    kept = audit.tombs(raw, "job")
    assert set(tokens[-RESENT:]) <= set(kept)
    audit.assert_free(raw, "job")


def test_releasing_random_tokens_writes_nothing(raw: redis.Redis) -> None:
    with latch("job", timeout=0):
        before = {key: raw.object("encoding", key) for key in raw.keys("*")}
        size = raw.hlen(audit.key("R", "job"))
        for number in range(50):
            closed = store().call(verbs.end("job", f"{number:040d}", "released"))
            assert closed.reason == "taken"
        assert raw.hlen(audit.key("R", "job")) == size
        assert set(raw.keys("*")) == set(before)
    for number in range(50):
        store().call(verbs.end("never", f"{number:040d}", "released"))
    assert raw.exists(audit.key("R", "never")) == 0


def test_the_events_are_capped(raw: redis.Redis) -> None:
    with latch_settings(EVENTS_MAX=100):
        for _ in range(600):
            latch("job", timeout=0).acquire().release()
    assert 100 <= raw.xlen(audit.key("events")) < 400  # "~": whole nodes of the stream go


def test_without_events_there_is_no_stream(raw: redis.Redis) -> None:
    with latch_settings(EVENTS="none"):
        with latch("job", timeout=0):
            assert latch("job", timeout=0).try_acquire() is None
        assert raw.exists(audit.key("events")) == 0


def test_the_default_events_are_the_problems(raw: redis.Redis) -> None:
    with latch_settings(EVENTS="problems"), latch("job", timeout=0):
        assert latch("job", timeout=0).try_acquire() is None
    assert audit.kinds(raw, "job") == ["refused"]


def test_every_lease_that_begins_ends_with_one_event(raw: redis.Redis) -> None:
    for _ in range(5):
        with latch("job", timeout=0):
            pass
    kept = audit.events(raw, "job")
    began = [fields["fence"] for kind, fields in kept if kind == "acquired"]
    ended = [fields["fence"] for kind, fields in kept if kind == "released"]
    assert len(began) == 5
    assert began == ended


def test_an_ended_locks_keys_go_by_themselves(raw: redis.Redis) -> None:
    with latch_settings(GRACE=1):
        latch("job", timeout=0).acquire().release()
        assert 0 < raw.pttl(audit.key("R", "job")) <= 2000
        assert 0 < raw.pttl(audit.key("P", "job")) <= 2000
    assert not raw.exists(audit.key("index"))
