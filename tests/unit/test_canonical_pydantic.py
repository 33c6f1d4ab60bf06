from __future__ import annotations

import pickle
from uuid import UUID

import pytest
from kombu.utils.json import dumps, loads

from django_latch.core.canonical import canonical

pydantic = pytest.importorskip("pydantic")


class Line(pydantic.BaseModel):
    sku: str
    count: int = 1


class GiftLine(Line):
    note: str


class Order(pydantic.BaseModel):
    number: int
    lines: list[Line] = []
    tags: set[str] = set()
    _private: int = 0

    @pydantic.computed_field
    @property
    def size(self) -> int:
        return len(self.lines)


class Open(pydantic.BaseModel, extra="allow"):
    a: int = 0


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Secret(pydantic.BaseModel):
    name: str = "n"
    hidden: int = pydantic.Field(default=0, exclude=True)


class Password(pydantic.BaseModel):
    password: pydantic.SecretStr


class Tracked(pydantic.BaseModel):
    id: UUID


def key(value: object) -> str:
    return canonical("task", {"value": value})


@pytest.mark.parametrize(
    "model",
    [Line(sku="a"), Order(number=1, lines=[Line(sku="a")]), Open(a=1, b=2), Numbers([1, 2])],
)
def test_a_model_is_its_dump(model) -> None:
    assert key(model) == key(model.model_dump())


@pytest.mark.parametrize("model", [Line(sku="a"), Open(a=1, b=2), Numbers([1, 2])])
def test_the_worker_finds_the_key_of_the_caller(model) -> None:
    """Celery sends the dump in JSON's types."""
    assert key(loads(dumps(model.model_dump(mode="json")))) == key(model)


def test_types_beyond_json_are_another_call_once_dumped() -> None:
    model = Tracked(id=UUID(int=1))
    assert key(model) == key(model.model_dump()) != key(model.model_dump(mode="json"))


@pytest.mark.parametrize(
    "model", [Order(number=1, tags={"a", "b"}), Open(a=1, b=2), Secret(hidden=1)]
)
def test_pickle_does_not_change_the_name(model) -> None:
    assert key(pickle.loads(pickle.dumps(model))) == key(model)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Line(sku="a"), Line(sku="b")),
        (Line(sku="1"), Line(sku="1", count=2)),
        (Secret(hidden=1), Secret(hidden=2)),
        (Open(b=1), Open(b="1")),
        (
            Order(number=1, lines=[GiftLine(sku="a", note="x")]),
            Order(number=1, lines=[GiftLine(sku="a", note="y")]),
        ),
    ],
)
def test_what_a_dump_would_lose_counts(first, second) -> None:
    assert key(first) != key(second)


def test_a_secret_is_refused() -> None:
    with pytest.raises(TypeError, match=r"SecretStr.*give key=") as caught:
        key(Password(password="hunter2"))
    assert "hunter2" not in str(caught.value)


def test_a_model_class_is_refused() -> None:
    with pytest.raises(TypeError, match="give key="):
        key(Line)
