"""The look-alike queryset by itself, on rows that need no server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import FieldError
from django.db.models import Q

from django_latch.core.owner import Owner
from django_latch.inventory import HolderInfo, LockInfo
from django_latch.live import MAXIMUM, LiveQuerySet, Source
from django_latch.models import ActiveLock

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def holder(fence: int, left: float, held: float = 10, **facts: object) -> HolderInfo:
    return HolderInfo(
        state="held",
        fence=fence,
        fingerprint=f"{fence:08x}",
        owner=Owner(**facts),
        acquired_at=NOW - timedelta(seconds=held),
        expires_at=NOW + timedelta(seconds=left),
        held_for=held,
        expires_in=left,
        ttl=30.0,
        limit=2,
    )


def lock(name: str, *holders: HolderInfo, waiters: int = 0) -> LockInfo:
    return LockInfo(name=name, holders=holders, waiters=waiters)


LOCKS = [
    lock("a", holder(5, 1, 50, task="mail.send", worker="w1")),
    lock("b", holder(2, 2, 5, task="bank.Sync", worker="w2"), waiters=3),
    lock("c", holder(3, 3, worker="w1"), holder(9, 30, worker="w2"), waiters=1),
    lock("d", waiters=2),
]


class Rows(Source):
    """Counts what is asked of it."""

    def __init__(self, locks: list[LockInfo] = LOCKS, cut: bool = False) -> None:
        self.locks, self.is_cut, self.calls = locks, cut, []

    def count(self) -> int:
        self.calls.append("count")
        return len(self.locks)

    def page(self, offset: int, limit: int, *, reverse: bool) -> list[LockInfo]:
        self.calls.append(("page", offset, limit, reverse))
        return (self.locks[::-1] if reverse else self.locks)[offset : offset + limit]

    def scan(self) -> tuple[list[LockInfo], bool]:
        self.calls.append("scan")
        return list(self.locks), self.is_cut

    def named(self, names: Iterable[str]) -> list[LockInfo]:
        self.calls.append(("named", *sorted(names)))
        return [lock for lock in self.locks if lock.name in names]


@pytest.fixture
def source() -> Rows:
    return Rows()


@pytest.fixture
def rows(source: Rows) -> LiveQuerySet:
    return LiveQuerySet(ActiveLock, source)


def names(rows: Iterable[ActiveLock]) -> str:
    return "".join(row.name for row in rows)


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({"worker": "w1"}, "ac"),
        ({"task__icontains": "SYNC"}, "b"),
        ({"task__contains": "SYNC"}, ""),
        ({"waiters__gt": 1}, "bd"),
        ({"waiters__lte": "1"}, "ac"),
        ({"fence": 9}, "c"),
        ({"fence__in": [5, "2"]}, "ab"),
        ({"held_for__gte": 50}, "a"),
        ({"held_for__lt": "6"}, "b"),
        ({"name": "b"}, "b"),
        ({"pk__in": ["a", "d", "zz"]}, "ad"),
        ({"pk__in": ["a", "b"], "name": "b"}, "b"),
        ({"name__startswith": "c"}, "c"),
        ({"state__iexact": "HELD", "worker": "w2"}, "bc"),
    ],
)
def test_filters(rows: LiveQuerySet, conditions: dict[str, object], found: str) -> None:
    assert names(rows.filter(**conditions)) == found
    assert rows.filter(**conditions).count() == len(found)


def test_filters_by_q(rows: LiveQuerySet) -> None:
    assert names(rows.filter(Q(worker="w2") | Q(name="d"))) == "bcd"
    assert names(rows.filter(Q(worker="w2") & ~Q(name="c"))) == "b"
    assert names(rows.filter(Q())) == "abcd"
    assert names(rows.exclude(worker="w1")) == "bd"
    assert names(rows.filter(worker="w1").filter(worker="w2")) == "c"


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ({"password": "x"}, FieldError),
        ({"name__regex": "x"}, FieldError),
        ({"name__startswith__x": "x"}, FieldError),
        ({"waiters": "many"}, ValueError),
        ({"fence__in": ["1", "x"]}, ValueError),
    ],
)
def test_an_unknown_condition_never_shows_everything(
    rows: LiveQuerySet, source: Rows, conditions: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        rows.filter(**conditions)
    assert source.calls == []


def test_searches_each_word_anywhere(rows: LiveQuerySet) -> None:
    assert names(rows.search(["w1", "MAIL"])) == "a"
    assert names(rows.search(["w1"])) == "ac"
    assert names(rows.search(["w1", "bank"])) == ""


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ((), "abcd"),
        (("-name",), "dcba"),
        (("waiters",), "acdb"),
        (("-waiters", "name"), "bdca"),
        (("fence",), "bcad"),
        (("worker", "-name"), "cabd"),
        (("-held_for", "-pk"), "dacb"),
    ],
)
def test_orders(rows: LiveQuerySet, order: tuple[str, ...], found: str) -> None:
    assert names(rows.order_by(*order)) == found


def test_refuses_an_unknown_order(rows: LiveQuerySet) -> None:
    with pytest.raises(FieldError):
        rows.order_by("?")


@pytest.mark.parametrize("order", [(), ("expires_in", "-pk"), ("-expires_in", "-pk")])
def test_pages_come_from_the_index(rows: LiveQuerySet, source: Rows, order: tuple[str]) -> None:
    rows = rows.order_by(*order)
    assert rows.count() == 4
    assert len(rows[1:3]) == 2
    assert source.calls == ["count", ("page", 1, 2, "-expires_in" in order)]


def test_other_orders_read_once(rows: LiveQuerySet, source: Rows) -> None:
    rows = rows.order_by("task", "-pk")
    assert rows.count() == 4
    assert names(rows[:2]) == "cb"  # the one without a task, then "bank.Sync"
    assert source.calls == ["scan"]


def test_names_are_read_alone(rows: LiveQuerySet, source: Rows) -> None:
    assert rows.get(pk="a").info is LOCKS[0]
    assert source.calls == [("named", "a")]


def test_get(rows: LiveQuerySet) -> None:
    with pytest.raises(ActiveLock.DoesNotExist):
        rows.get(name="zz")
    with pytest.raises(ActiveLock.MultipleObjectsReturned):
        rows.get(worker="w1")


def test_slices_like_a_queryset(rows: LiveQuerySet, source: Rows) -> None:
    assert names(rows[1:3]) == "bc"
    assert names(rows[1:][:2]) == "bc"
    assert names(rows[1:3][:9]) == "bc"
    assert names(rows[9:]) == names(rows[2:2]) == ""
    assert rows[1].name == "b"
    assert rows[3:][0].name == "d"
    assert rows[1:3].count() == 2
    with pytest.raises(IndexError):
        rows[4]
    with pytest.raises(ValueError, match="Negative"):
        rows[-3:]
    with pytest.raises(TypeError, match="slice"):
        rows[:2].filter(worker="w1")


def test_is_lazy_immutable_and_keeps_its_rows(rows: LiveQuerySet, source: Rows) -> None:
    narrowed = rows.filter(worker="w1").order_by("-name")
    assert source.calls == []
    assert names(narrowed) == names(narrowed) == "ca"
    assert bool(narrowed)
    assert len(source.calls) == 1
    assert names(rows) == "abcd"
    assert names(narrowed.all()) == "ca"
    assert source.calls.count("scan") == 2


def test_none_asks_nothing(rows: LiveQuerySet, source: Rows) -> None:
    assert list(rows.none()) == []
    assert not rows.none().exists()
    assert not rows.filter(pk__in=[]).filter(worker="w1")
    assert source.calls == []


def test_says_when_it_was_cut() -> None:
    rows = LiveQuerySet(ActiveLock, Rows(cut=True))
    assert rows.filter(worker="w1").cut
    assert not rows.cut
    many = [lock(str(number)) for number in range(MAXIMUM + 1)]
    assert LiveQuerySet(ActiveLock, Rows(many)).cut
    assert len(LiveQuerySet(ActiveLock, Rows(many))) == MAXIMUM
