"""Bad input: a clear error of ours that names value and remedy, and nothing sent."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
import redis

from django_latch import LatchError, LatchNameError, LatchValueError, latch
from tests.integration import audit


def values(name: str, *given: object) -> pytest.MarkDecorator:
    """Parametrise over values, each shown with its type."""
    return pytest.mark.parametrize(name, given, ids=_shown)


def _shown(value: object) -> str:
    """The same in every process: no addresses."""
    return f"{type(value).__name__} {re.sub(r' at 0x[0-9a-f]+', '', ascii(value)):.40}"


NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _nothing_sent(raw: redis.Redis) -> Iterator[None]:
    yield
    assert raw.keys("*") == []


@values("heartbeat", "no", 1, 0, None)
def test_a_heartbeat_that_is_no_choice(heartbeat: object) -> None:
    with pytest.raises(LatchValueError, match="heartbeat must be True or False"):
        latch("job", heartbeat=heartbeat)  # type: ignore[arg-type]


@values(
    "ttl",
    0,
    0.0,
    -1,
    -0.5,
    0.009,
    NAN,
    INFINITY,
    -INFINITY,
    10**400,
    1e308,
    86401,
    timedelta(0),
    timedelta(days=-1),
    timedelta.max,
    "30",
    b"30",
    True,
    False,
    [30],
    Decimal(30),
    3j,
)
def test_ttl(ttl: object) -> None:
    with pytest.raises(LatchValueError, match="ttl") as refused:
        latch("job", ttl=ttl, timeout=0).acquire()  # type: ignore[arg-type]
    assert isinstance(refused.value, ValueError)
    assert len(str(refused.value)) < 300


@values(
    "timeout",
    -1,
    -0.001,
    NAN,
    INFINITY,
    10**400,
    3601,
    timedelta(seconds=-1),
    "10",
    True,
    [10],
    None.__class__,
)
def test_timeout(timeout: object) -> None:
    with pytest.raises(LatchValueError, match="timeout"):
        latch("job", timeout=timeout).acquire()  # type: ignore[arg-type]


@values("limit", 0, -1, 1001, 2**70, 1.0, "1", True, None, NAN)
def test_limit(limit: object) -> None:
    with pytest.raises(LatchValueError, match="limit"):
        latch("job", limit=limit, timeout=0).acquire()  # type: ignore[arg-type]


@values("waiters", -1, 10_001, 1.0, "1", True)
def test_max_waiters(waiters: object) -> None:
    with pytest.raises(LatchValueError, match="max_waiters"):
        latch("job", max_waiters=waiters, timeout=0).acquire()  # type: ignore[arg-type]


@values("hold", 0, -1, NAN, "1", True)
def test_max_hold(hold: object) -> None:
    with pytest.raises(LatchValueError, match="max_hold"):
        latch("job", max_hold=hold, timeout=0).acquire()  # type: ignore[arg-type]


@values("hold", -1, NAN, INFINITY, "1", 10**400)
def test_min_hold(hold: object) -> None:
    with pytest.raises(LatchValueError, match="min_hold"):
        latch("job", timeout=0).acquire(min_hold=hold)  # type: ignore[arg-type]


@values("policy", "", "retry", "RAISE", None, 1)
def test_on_conflict(policy: object) -> None:
    with pytest.raises(LatchValueError, match="on_conflict"):
        latch("job", on_conflict=policy)  # type: ignore[arg-type]


@values("meta", "text", [1], {"a": object()}, {"a": "x" * 5000}, {1j: 1}, {"a": {1, 2}})
def test_meta(meta: object) -> None:
    with pytest.raises(LatchValueError, match="meta"):
        latch("job", meta=meta)  # type: ignore[arg-type]


@pytest.mark.parametrize("levels", [17, 300, 100_000])
def test_meta_that_nobody_could_read_again(levels: int) -> None:
    deep: dict[str, object] = {}
    for _ in range(levels - 1):
        deep = {"a": deep}
    with pytest.raises(LatchValueError, match="16 levels"):
        latch("job", meta=deep)


@values("owner", 1, b"me", ["me"], object())
def test_owner(owner: object) -> None:
    with pytest.raises(LatchValueError, match="owner"):
        latch("job", owner=owner)  # type: ignore[arg-type]


@values(
    "name",
    "",
    "x" * 256,
    "a\nb",
    "a\x00b",
    "a\x7f",
    "\ud800",
    "a}b",
    "a\u2028b",
    None,
    7,
    b"job",
    ["job"],
    "{",
    "{}",
    "{0}",
    "{_x}",
    "{x.__class__}",
    "{x[0]}",
    "{x!r}",
    "{x:d}",
    "{a}{b}",
)
def test_name(name: object) -> None:
    with pytest.raises(LatchNameError) as refused:
        latch(name, timeout=0).acquire()  # type: ignore[arg-type]
    assert isinstance(refused.value, ValueError)
    assert len(str(refused.value)) < 500


def test_a_template_is_not_a_name() -> None:
    with pytest.raises(LatchNameError, match=r"f-string|decorator"):
        latch("report:{year}", timeout=0).acquire()


def test_an_argument_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="tll"):
        latch("job", tll=5)  # type: ignore[call-arg]


def test_with_cannot_skip_its_body() -> None:
    with pytest.raises(LatchValueError, match="try_acquire"), latch("job", on_conflict="skip"):
        pytest.fail("the body ran")


def test_the_token_of_a_refused_call_is_in_no_traceback() -> None:
    secret = "s3cret" * 3 + "\n"
    with pytest.raises(LatchError) as refused:
        latch("job", timeout=0).acquire(token=secret)
    shown = "".join(traceback.format_exception(refused.value))
    assert secret.strip() not in shown.replace('s3cret" * 3', "")


def test_a_huge_name_or_owner_from_outside_is_bounded(raw: redis.Redis) -> None:
    with latch("n" * 255, timeout=0, owner="o" * 100_000):
        (record,) = audit.records(raw, "n" * 255).values()
        assert len(record.raw) < 10_000
    raw.flushdb()
