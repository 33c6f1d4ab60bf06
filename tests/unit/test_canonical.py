from __future__ import annotations

import enum
import inspect
import itertools
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import MagicMock
from zoneinfo import ZoneInfo

import pytest
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_latch.core.canonical import MAX_DEPTH, bind, canonical
from django_latch.core.names import check_name

Pair = namedtuple("Pair", "a b")


class Plan(enum.Enum):
    GOLD = 1
    ODD = (1, [2])
    EVEN = [1, [2]]


class Other(enum.Enum):
    GOLD = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Size(enum.IntEnum):
    S = 1


class Fruit(str, enum.Enum):  # noqa: UP042 - formats as its member, not as its value
    FIG = "fig"


@dataclass
class Point:
    x: object
    y: object = 0
    cache: object = field(default=None, compare=False)


@dataclass
class Place:
    x: object
    y: object = 0


class Order:
    """Has the shape of a Django model instance."""

    _meta = SimpleNamespace(label_lower="shop.order")

    def __init__(self, pk: object, db: str | None = "default") -> None:
        self.pk = pk
        self._state = SimpleNamespace(db=db)


class Invoice(Order):
    _meta = SimpleNamespace(label_lower="shop.invoice")


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"

    __repr__ = __str__


def key(value: object) -> str:
    return canonical("task", {"value": value})


NOON = datetime(2024, 1, 1, 12)  # noqa: DTZ001 - naive on purpose

# All of these are different calls.
DIFFERENT: list[object] = [
    None, "None", "null", True, False, "True", "true", 0, 1, -1, 1.0, -0.0, 0.0, "1", "1.0", b"1",
    b"", "", [], {}, set(), 1e22, 10**22, float("inf"), float("-inf"), float("nan"), "nan", "inf",
    [1], ["1"], [True], [1.0], [[1]], [1, 1], [[1], 1], [1, [1]], "[1]", {1}, {"1"}, {1, 2},
    {"1": 1}, {"1": "1"}, {"true": 1}, {"a": 1}, {"a": {"b": 1}}, {"a": 1, "b": 1}, {b"1": 1},
    {(1,): 1}, {"[1]": 1}, [{"a": 1}, {"b": 1}], [{"a": 1, "b": 1}], "dict()", 'dict("a":1)',
    "a", "a,b", ["a,b"], ["a", "b"], 'a"', 'a","b', "a%22", "%", "%25", "a\n", "a%0A", "{", "%7B",
    "é", "e\u0301", "\ud800", "%ED%A0%80", " ", "a ", "\u2028",
    Decimal("1"), Decimal("1.0"), Decimal("1E+2"), Decimal("100"), Decimal("NaN"), "Decimal(1)",
    uuid.UUID(int=1), str(uuid.UUID(int=1)), uuid.UUID(int=1).hex, uuid.UUID(int=2),
    NOON, NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=timezone(timedelta(hours=1))),
    NOON.replace(hour=13, tzinfo=timezone(timedelta(hours=1))), NOON.replace(microsecond=1),
    NOON.isoformat(), NOON.date(), NOON.date().isoformat(), NOON.time(),
    NOON.time().replace(tzinfo=UTC), NOON.time().isoformat(), timedelta(1), timedelta(seconds=1),
    timedelta(microseconds=1), timedelta(-1), timedelta(0),
    Plan.GOLD, Plan.ODD, Plan.EVEN, Other.GOLD, Right.READ, Right.READ | Right.WRITE, Right(0),
    Order(1), Order("1"), Order(2), Order(1, "other"), Order(1, None), Invoice(1), Order((1, 2)),
    Point(1), Point("1"), Point(1, 1), Point(Point(1)), Place(1),
]  # fmt: skip


def test_different_calls_have_different_names() -> None:
    names = [key(value) for value in DIFFERENT]
    twins = [
        (DIFFERENT[a], DIFFERENT[b])
        for a, b in itertools.combinations(range(len(names)), 2)
        if names[a] == names[b]
    ]
    assert twins == []


def test_every_name_is_valid() -> None:
    for value in DIFFERENT:
        name = key(value)
        assert check_name(name) == name
        assert name.startswith("task(value=")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, [2]], (1, (2,))),
        (Pair(1, 2), [1, 2]),
        ({1, 2, 3}, frozenset([3, 2, 1])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "x"}, {"1": "x"}),
        ({True: "x"}, {"true": "x"}),
        ({None: "x"}, {"null": "x"}),
        ({1.5: "x"}, {"1.5": "x"}),
        (Size.S, 1),
        (Fruit.FIG, "fig"),
        (Loud("a"), "a"),
        (float("nan"), -float("nan")),
        (Plan.GOLD, Plan(1)),
        (Point(1, cache="a"), Point(1, cache="b")),
        (Order(1), Order(1)),
        (SimpleLazyObject(lambda: Order(1)), Order(1)),
        (
            NOON.replace(tzinfo=ZoneInfo("Europe/Berlin")),
            NOON.replace(tzinfo=timezone(timedelta(hours=1))),
        ),
    ],
)
def test_same_calls_have_the_same_name(first: object, second: object) -> None:
    assert key(first) == key(second)


def test_readable_where_short() -> None:
    arguments = {"account_id": 42, "full": True, "tags": ("a", "b"), "note": 'a {b}: "c" 100%\n'}
    assert canonical("billing.sync", arguments) == (
        'billing.sync(account_id=42,full=True,note="a %7Bb%7D: %22c%22 100%25%0A",tags=["a","b"])'
    )


def test_no_arguments() -> None:
    assert canonical("nightly", {}) == "nightly()"


def test_the_order_of_parameters_does_not_count() -> None:
    assert canonical("t", {"a": 1, "b": 2}) == canonical("t", {"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", {"b": 1}), ("a(b=1)", {})),
        (("a(", {}), ("a", {"(": 1})),
        (("a", {"x": 1, "y": 2}), ("a", {"x": "1,y=2"})),
        (("a", {"x=1,y": 2}), ("a", {"x": 1, "y": 2})),
        (("a", {"x": 1}), ("b", {"x": 1})),
        (("a", {"x": 1}), ("a", {"y": 1})),
        (("a%28", {}), ("a(", {})),
    ],
)
def test_label_and_arguments_do_not_run_into_each_other(first, second) -> None:
    assert canonical(*first) != canonical(*second)


def test_a_label_of_any_characters_gives_a_name() -> None:
    assert canonical("täsk:{x}\n(1)", {}) == "täsk:%7Bx%7D%0A%281)()"


def test_a_long_call_is_cut_and_hashed() -> None:
    names = {key("x" * 10_240 + str(number)) for number in range(1_000)}
    assert len(names) == 1_000
    assert {len(name) for name in names} == {255}
    assert all(name.startswith('task(value="xxx') for name in names)


def test_a_long_label_keeps_its_calls_apart() -> None:
    label = "package." * 100
    assert canonical(label, {"a": 1}) != canonical(label, {"a": 2})
    assert len(canonical(label, {"a": 1})) == 255


def test_an_integer_that_python_will_not_write_in_decimal() -> None:
    assert key(10**5_000) != key(10**5_000 + 1) != key({10**5_000: 1})


class Unknown:
    pass


REFUSED = {
    "object": object(),
    "instance": Unknown(),
    "class": Unknown,
    "built-in class": int,
    "dataclass": Point,
    "enum": Plan,
    "function": len,
    "iterator": iter([]),
    "generator": (value for value in ()),
    "range": range(3),
    "bytearray": bytearray(b"x"),
    "memoryview": memoryview(b"x"),
    "complex": 1j,
    "mock": MagicMock(),
    "lazy object": SimpleLazyObject(lambda: "x"),
    "lazy text": gettext_lazy("x"),
    "in a list": [Unknown()],
    "in dicts": {"a": {"b": Unknown()}},
    "as a key": {Unknown(): 1},
    "in a set": {Unknown()},
    "in a dataclass": Point(Unknown()),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"from the argument 'account'.*give key=") as caught:
        canonical("task", {"fine": 1, "account": value})
    assert "0x" not in str(caught.value)


@pytest.mark.parametrize("pk", [None, (1, None)])
def test_an_unsaved_model_instance_is_refused(pk: object) -> None:
    with pytest.raises(
        TypeError, match=r"argument 'value': it holds a .*Order without a primary key"
    ):
        key([Order(pk)])


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_bounded() -> None:
    assert key(nested(MAX_DEPTH))
    with pytest.raises(TypeError, match="nested too deeply"):
        key(nested(MAX_DEPTH + 1))


def test_nesting_beyond_the_recursion_limit_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="nested too deeply"):
        key(nested(100_000))


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value += [value, value]
    with pytest.raises(TypeError, match="contains itself"):
        key(value)


def test_a_small_object_that_unfolds_without_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("django_latch.core.canonical.MAX_VALUES", 10_000)
    value: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value, value]
    with pytest.raises(TypeError, match="too large"):
        key(value)


class TestBind:
    @staticmethod
    def call(a, b=2, *rest, c=3, **more):
        """Has a parameter of each kind."""

    signature = inspect.signature(call)

    def test_defaults_are_filled_in(self) -> None:
        expected = {"a": 1, "b": 2, "rest": (), "c": 3, "more": {}}
        assert bind(self.signature, (1,), {}) == expected

    def test_positions_and_keywords_are_the_same_call(self) -> None:
        names = {
            canonical("t", bind(self.signature, args, kwargs))
            for args, kwargs in [((1, 2), {}), ((1,), {"b": 2}), ((), {"b": 2, "a": 1, "c": 3})]
        }
        assert len(names) == 1

    def test_what_is_collected_counts(self) -> None:
        names = {
            canonical("t", bind(self.signature, args, kwargs))
            for args, kwargs in [
                ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4), {}),
                ((1, 2), {"x": 3}), ((1, 2), {"y": 3}),
            ]
        }  # fmt: skip
        assert len(names) == 5

    @pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1,), {"a": 1})])
    def test_arguments_that_do_not_fit(self, args, kwargs) -> None:
        with pytest.raises(TypeError, match="'a'"):
            bind(self.signature, args, kwargs)


def identity(value: object) -> object:
    """Return what makes a call, built without the code under test."""
    if isinstance(value, (list, tuple)):
        return ("list", tuple(identity(each) for each in value))
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(identity(each) for each in value))
    if isinstance(value, dict):
        return ("dict", frozenset((identity(k), identity(v)) for k, v in value.items()))
    return (type(value).__name__, repr(value))


few_scalars = st.sampled_from(
    [None, True, False, 0, 1, 1.0, "", "1", "a", 'a"', "a,", "(", ")", b"a", Decimal(1),
     date.min, time.min]
)  # fmt: skip
few_values = st.recursive(
    few_scalars,
    lambda children: (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.sets(few_scalars, max_size=3)
        | st.dictionaries(st.sampled_from(["", "1", "a", 'a"', b"a"]), children, max_size=3)
    ),
    max_leaves=5,
)


@given(few_values, few_values)
def test_names_are_equal_exactly_if_the_calls_are(first: object, second: object) -> None:
    assert (key(first) == key(second)) == (identity(first) == identity(second))


@given(st.text(st.characters(exclude_categories=()), max_size=8), few_values)
def test_any_call_gives_a_valid_name_that_is_stable(label: str, value: object) -> None:
    name = canonical(label, {"value": value})
    assert check_name(name) == name
    assert name == canonical(label, {"value": value})
