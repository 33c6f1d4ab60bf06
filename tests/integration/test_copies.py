"""Every script twice, late, and out of order: the same answer, and nothing granted to nobody."""

from __future__ import annotations

import re
import time

import pytest
import redis

from django_latch.core import replies, verbs
from tests.integration import audit
from tests.integration.aliases import latch_settings
from tests.integration.calls import OWNER, A, B, C, grant, request, send
from tests.integration.until import until


def state(raw: redis.Redis) -> object:
    """All of it but the events, the clock and what counts down."""
    kept: dict[str, object] = {}
    for key in sorted(raw.keys("*")):
        kind = key.removeprefix(audit.BUCKET).split(":")[0]
        if kind == "R":
            kept[key] = {
                token: re.sub(
                    r"^queued.*|^(\w+\|\d+)\|\d+", lambda m: f"{m[1] or 'queued'}|EXP", text
                )
                for token, text in raw.hgetall(key).items()
            }
        elif kind in "QPL":
            kept[key] = set(raw.zrange(key, 0, -1))
        elif kind == "index":
            kept[key] = raw.zrange(key, 0, -1)
    return kept


def timeless(reply: object) -> object:
    """But what counts down; and the hint whom to look after, which only the first answer gives."""
    return re.sub(r"\b(left|now|held_for|offered)=-?\d+", r"\1=_", repr(reply))


def held(raw: redis.Redis) -> None:
    grant(A)


def held_with_waiters(raw: redis.Redis) -> None:
    grant(A)
    for token in (B, C):
        send(request(token, timeout=5))


def released(raw: redis.Redis) -> None:
    grant(A)
    send(verbs.end("job", A, "released"))


def free(raw: redis.Redis) -> None:
    pass


CALLS = {
    "acquire": (free, lambda: request(A)),
    "acquire while others hold": (held, lambda: request(B)),
    "acquire while holding": (held, lambda: request(A)),
    "acquire after the release": (released, lambda: request(A)),
    "enqueue": (held, lambda: request(B, timeout=5)),
    "poll": (held_with_waiters, lambda: request(C, timeout=5)),
    "poll by who is first": (held_with_waiters, lambda: request(B, timeout=5)),
    "renew": (held, lambda: verbs.renew("job", A, None, 20)),
    "renew what is gone": (free, lambda: verbs.renew("job", A, 7, 20)),
    "shorten": (held, lambda: verbs.shorten("job", A, None, 5)),
    "release": (held, lambda: verbs.end("job", A, "released")),
    "release with waiters": (held_with_waiters, lambda: verbs.end("job", A, "released")),
    "release of nothing": (free, lambda: verbs.end("job", A, "released")),
    "release by another": (held, lambda: verbs.end("job", B, "released")),
    "abandon a place": (held_with_waiters, lambda: verbs.end("job", B, "abandoned")),
    "abandon before the request": (
        free,
        lambda: verbs.end("job", A, "abandoned", resent=True),
    ),
    "clear": (
        held_with_waiters,
        lambda: verbs.end("job", A, "revoked", resent=True, note="by a test"),
    ),
    "adopt": (held, lambda: verbs.adopt("job", A, B, 20, OWNER)),
    "adopt nothing": (free, lambda: verbs.adopt("job", A, B, 20, OWNER)),
    "trim": (held_with_waiters, lambda: verbs.trim("job")),
    "list": (held_with_waiters, lambda: verbs.read("job")),
}


@pytest.mark.parametrize(("before", "make"), CALLS.values(), ids=CALLS.keys())
def test_twice_is_once(raw: redis.Redis, before: object, make: object) -> None:
    before(raw)  # type: ignore[operator]
    call = make()  # type: ignore[operator]
    first = send(call)
    once = state(raw)
    audit.assert_sound(raw)
    second = send(call)
    assert timeless(second) == timeless(first)
    assert state(raw) == once


BETWEEN = {
    "another's try": lambda: request("d" * 40),
    "another's wait": lambda: request("d" * 40, timeout=5),
    "a renewal": lambda: verbs.renew("job", A, None, 20),
    "a trim": lambda: verbs.trim("job"),
    "another's release": lambda: verbs.end("job", "d" * 40, "released"),
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN.keys())
def test_a_release_answers_the_same_whatever_happened_in_between(between: object) -> None:
    grant(A)
    call = verbs.end("job", A, "released")
    first = send(call)
    send(between())  # type: ignore[operator]
    assert send(call) == first


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("released", lambda: verbs.end("job", A, "released")),
        ("abandoned", lambda: verbs.end("job", A, "abandoned", resent=True)),
        ("revoked", lambda: verbs.end("job", A, "revoked", resent=True)),
        ("adopted", lambda: verbs.adopt("job", A, B, 20, OWNER)),
    ],
)
@pytest.mark.parametrize("wait", [0, 5], ids=["try", "wait"])
def test_a_request_that_comes_after_the_end_grants_nothing(
    raw: redis.Redis, reason: str, end: object, wait: float
) -> None:
    grant(A)
    send(end())  # type: ignore[operator]
    before = state(raw)
    late = send(request(A, timeout=wait))
    assert isinstance(late, replies.Ended)
    assert late.reason == reason
    assert state(raw) == before
    assert isinstance(send(verbs.renew("job", A, None, 20)), replies.Ended)
    assert state(raw) == before


@pytest.mark.parametrize("wait", [0, 5], ids=["try", "wait"])
def test_an_abandon_that_overtakes_its_request(raw: redis.Redis, wait: float) -> None:
    closed = send(verbs.end("job", A, "abandoned", resent=True))
    assert closed == replies.Closed("abandoned", 0, 0)
    late = send(request(A, timeout=wait))
    assert isinstance(late, replies.Ended)
    assert late.reason == "abandoned"
    audit.assert_free(raw, "job")


def test_a_poll_that_comes_after_the_waiter_left_makes_no_ghost(raw: redis.Redis) -> None:
    grant(A)
    place = send(request(B, timeout=5))
    assert isinstance(place, replies.Queued)
    send(verbs.end("job", B, "abandoned", resent=True))
    late = send(request(B, timeout=5, ticket=place.ticket))
    assert isinstance(late, replies.Ended)
    assert raw.exists(audit.key("Q", "job")) == 0


def expired(raw: redis.Redis) -> replies.Granted:
    told = grant(A, ttl=0.03)
    time.sleep(0.04)
    return told


def test_an_old_token_after_expiry_does_nothing(raw: redis.Redis) -> None:
    told = expired(raw)
    assert send(verbs.renew("job", A, told.fence, 20)) == replies.Ended("expired", told.fence)
    assert send(verbs.end("job", A, "released", told.fence)).reason == "expired"
    assert send(request(A)) == replies.Ended("expired", told.fence)
    audit.assert_free(raw, "job")
    assert audit.kinds(raw, "job") == ["acquired", "expired"]


def test_an_old_token_after_expiry_and_re_acquisition_does_nothing(raw: redis.Redis) -> None:
    told = expired(raw)
    grant(B)
    before = state(raw)
    assert send(verbs.renew("job", A, told.fence, 20)) == replies.Ended("expired", told.fence)
    assert send(verbs.renew("job", A, None, 20)) == replies.Ended("expired", told.fence)
    assert send(verbs.end("job", A, "released")).reason == "expired"
    assert send(verbs.end("job", A, "abandoned", resent=True)).reason == "expired"
    assert send(request(A)) == replies.Ended("expired", told.fence)
    assert state(raw) == before
    assert audit.kinds(raw, "job") == ["acquired", "expired", "acquired"]


def left(raw: redis.Redis) -> float:
    return (audit.records(raw, "job")[A].exp - audit.now(raw)) / 1000


def test_late_copies_never_shorten_a_lease(raw: redis.Redis) -> None:
    told = grant(A, ttl=5)
    send(verbs.renew("job", A, told.fence, 60))
    send(verbs.renew("job", A, told.fence, 5))
    assert left(raw) > 59
    send(request(A, ttl=5))
    assert left(raw) > 59
    send(request(A, ttl=5, timeout=3))
    assert left(raw) > 59


def test_shortening_is_a_verb_of_its_own(raw: redis.Redis) -> None:
    told = grant(A, ttl=60)
    reply = send(verbs.shorten("job", A, told.fence, 2))
    assert isinstance(reply, replies.Renewed)
    assert 1.5 < left(raw) <= 2
    assert raw.zscore(audit.key("index"), "job") == audit.records(raw, "job")[A].exp
    assert isinstance(send(verbs.shorten("job", A, told.fence, 30)), replies.Renewed)
    assert left(raw) <= 2  # it never lengthens
    assert isinstance(send(verbs.shorten("job", B, None, 1)), replies.Ended)
    assert isinstance(send(verbs.shorten("job", A, told.fence + 1, 1)), replies.Ended)


def test_a_copy_that_comes_after_the_loss_of_all_data_does_not_hide_the_loss(
    raw: redis.Redis,
) -> None:
    told = grant(A)
    raw.flushdb()
    again = grant(A)
    assert again.fence > told.fence
    renewed = send(verbs.renew("job", A, told.fence, 20))
    assert renewed == replies.Ended("superseded", again.fence)
    ended = send(verbs.end("job", A, "released", told.fence))
    assert isinstance(ended, replies.Closed)
    assert ended.reason == "superseded"
    assert audit.listed(raw, "job") == [A]


def test_a_token_used_again_after_grace_is_not_forgotten_with_its_old_tomb(
    raw: redis.Redis,
) -> None:
    with latch_settings(GRACE=1):
        grant(B, limit=2)  # keeps the records
        grant(A, limit=2)
        send(verbs.end("job", A, "released"))
        ended = audit.now(raw)
        until(lambda: audit.now(raw) > ended + 1000)  # GRACE, by the server's clock
        grant(A, limit=2)
        for number in range(64):  # fills the tombs until the oldest go
            token = f"{number:040d}"
            send(verbs.end("job", token, "abandoned"))
        assert sorted(audit.listed(raw, "job")) == [A, B]
        assert isinstance(send(verbs.renew("job", A, None, 20)), replies.Renewed)
        audit.assert_sound(raw)


def test_a_token_is_refused_for_as_long_as_grace_says(raw: redis.Redis) -> None:
    with latch_settings(GRACE=1):
        grant(B, limit=2)
        grant(A, limit=2)
        send(verbs.end("job", A, "released"))
        begun = time.monotonic()
        while isinstance(send(request(A, limit=2)), replies.Ended):
            assert time.monotonic() < begun + 3
            time.sleep(0.02)
        assert time.monotonic() - begun >= 0.99
