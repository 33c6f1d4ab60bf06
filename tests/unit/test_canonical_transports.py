"""The caller's key is the worker's key: what a message does to arguments does not change it."""

from __future__ import annotations

import enum
import json
import os
import pickle
import subprocess
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu.utils.json import dumps, loads

from django_latch.core.canonical import canonical

ROOT = Path(__file__).resolve().parents[2]


class Plan(enum.Enum):
    GOLD = 1


class Size(enum.IntEnum):
    S = 1


class Fruit(str, enum.Enum):  # noqa: UP042 - formats as its member, not as its value
    FIG = "fig"


@dataclass
class Point:
    x: object


class Order:
    """Has the shape of a Django model instance."""

    _meta = SimpleNamespace(label_lower="shop.order")

    def __init__(self, pk: object) -> None:
        self.pk = pk
        self._state = SimpleNamespace(db="default")


def key(value: object) -> str:
    return canonical("task", {"value": value})


def by_json(value: object) -> object:
    return loads(dumps([value]))[0]


def by_pickle(value: object) -> object:
    return pickle.loads(pickle.dumps(value))


def json_key(key: object) -> str:
    return next(iter(json.loads(json.dumps({key: 0}))))


text = st.text(st.characters(exclude_categories=()))
json_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | text
    | st.binary()
    | st.uuids()
    | st.decimals()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.times(timezones=st.none() | st.just(UTC) | st.timezones())
    | st.sampled_from([Size.S, Fruit.FIG])
)
json_keys = (
    text
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats()
    | st.sampled_from([Size.S, Fruit.FIG])
)


def json_dicts(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    # JSON loses an entry where two keys have the same text.
    pairs = st.tuples(json_keys, children)
    return st.lists(pairs, max_size=4, unique_by=lambda pair: json_key(pair[0])).map(dict)


json_values = st.recursive(
    json_scalars,
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | json_dicts(children)
    ),
    max_leaves=12,
)
hashable = st.none() | st.integers() | text | st.binary() | st.uuids() | st.dates()
other_values = st.recursive(
    json_values
    | st.timedeltas()
    | st.sampled_from(Plan)
    | hashable.map(Point)
    | st.integers().map(Order)
    | st.sets(hashable, max_size=4)
    | st.frozensets(hashable, max_size=4)
    | st.dictionaries(hashable, hashable, max_size=4),
    lambda children: st.lists(children, max_size=3),
    max_leaves=5,
)


@given(json_values)
def test_json_does_not_change_the_name(value: object) -> None:
    assert key(by_json(value)) == key(value)


@given(other_values)
def test_pickle_does_not_change_the_name(value: object) -> None:
    assert key(by_pickle(value)) == key(value)


@pytest.mark.parametrize(
    "value",
    [
        (1, (2, [3])), {1: {True: {None: {1.5: "x"}}}}, {Size.S: Fruit.FIG}, float("nan"),
        float("-inf"), -0.0, 1e22, b"text", b"\xff\x00", uuid.UUID(int=1), Decimal("1.50"),
        "\ud800 é 发", "x" * 10_240,
        datetime(2024, 7, 1, fold=1),  # noqa: DTZ001
        datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    ],
)  # fmt: skip
def test_both_transports_agree(value: object) -> None:
    assert key(by_json(value)) == key(value) == key(by_pickle(value))


@pytest.mark.parametrize(
    "value",
    [{1}, frozenset([1]), timedelta(1), Plan.GOLD, Point(1), Order(1), {b"a": 1}, {(1,): 1}],
)
def test_json_does_not_carry_the_rest(value: object) -> None:
    """If this fails, kombu has learned a type: compare its keys and the list in canonical.py."""
    assert key(value)
    with pytest.raises(TypeError):
        dumps([value])


def test_a_celery_task_is_refused_as_an_argument() -> None:
    from celery import Celery

    app = Celery("app", set_as_current=False)

    @app.task(bind=True)
    def task(self):
        """Does nothing."""

    with pytest.raises(TypeError, match=r"'self'.*give key="):
        canonical("task", {"self": task})


SCRIPT = """
import dataclasses, enum, uuid
from django_latch.core.canonical import canonical

Plan = enum.Enum("Plan", "GOLD SILVER")
Point = dataclasses.make_dataclass("Point", ["x"])
words = {f"word{number}" for number in range(50)}
print(canonical("task", {
    "words": words, "frozen": frozenset(words), "nested": {"a": [words, {frozenset(words): 1}]},
    "plan": {Plan.GOLD, Plan.SILVER}, "point": Point(words), "id": {uuid.UUID(int=1), b"x", None},
}))
"""


def test_each_process_makes_the_same_name_whatever_its_hash_seed() -> None:
    names = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(names) == 1
    assert names.pop().startswith("task(")
