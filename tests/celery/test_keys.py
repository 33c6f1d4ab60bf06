"""The name of a call's lock."""

from __future__ import annotations

from uuid import UUID

import pytest

from django_latch import LatchNameError
from django_latch.celery import SingleFlight
from django_latch.celery.keys import Keys


def sync(account, full=False, *rest, since=None, **more):
    """Stands for the function of a task."""


def bound(self, account, full=False):
    """Stands for the function of a bound task."""


def make(key, *args, function=sync, is_bound=False, **kwargs):
    return Keys(SingleFlight(key=key), function, bound=is_bound).make("tasks.sync", args, kwargs)


def test_a_template_takes_arguments_by_name_however_they_are_passed():
    assert make("sync:{account}:{full}", 5) == "sync:5:false"
    assert make("sync:{account}:{full}", account=5, full=True) == "sync:5:true"
    assert make("sync:{account}", "5") == make("sync:{account}", 5)


def test_the_task_itself_is_no_argument():
    assert make("sync:{account}", 5, function=bound, is_bound=True) == "sync:5"
    assert make(None, 5, function=bound, is_bound=True) == "tasks.sync(account=5,full=False)"
    with pytest.raises(LatchNameError, match="'self' is not a parameter"):
        Keys(SingleFlight(key="{self}"), bound, bound=True).check("sync")


def test_without_a_key_all_arguments_count():
    assert make(None, 5) == make(None, account=5) == make(None, 5, False)
    assert make(None, 5) != make(None, "5")
    assert make(None, 5) != make(None, 5, True)
    assert make(None, 5, False, 6) != make(None, 5, since=6)
    assert make(None, UUID(int=1)) != make(None, str(UUID(int=1)))


def test_a_callable_gets_the_arguments_of_the_call():
    def key(account, full=None, **more):
        return f"sync:{account}:{full}:{sorted(more)}"

    assert make(key, 5) == "sync:5:None:[]"
    assert make(key, account=5, full=True, x=1) == "sync:5:True:['x']"


@pytest.mark.parametrize("returned", [None, 5, "", b"sync"])
def test_a_callable_must_return_a_name(returned):
    with pytest.raises(LatchNameError, match="the key function returned"):
        make(lambda account: returned, 5)


def test_a_name_of_a_callable_is_checked_and_made_to_fit():
    with pytest.raises(LatchNameError):
        make(lambda account: "sync:{account}", 5)
    long = make(lambda account: "x" * 1000 + account, "a")
    assert len(long) <= 255
    assert long != make(lambda account: "x" * 1000 + account, "b")


def test_arguments_that_do_not_fit_are_told_apart_from_a_key_that_cannot_be_made():
    keys = Keys(SingleFlight(key="sync:{account}"), sync, bound=False)
    assert keys.fitted((), {}) is None
    with pytest.raises(TypeError, match="account"):
        keys.make("tasks.sync", (), {})
    assert keys.fitted((object(),), {}) is not None
    with pytest.raises(TypeError, match="'account'"):
        keys.make("tasks.sync", (object(),), {})


class TestPydantic:
    """Senders may pass models, workers find dicts: the key is the same."""

    @pytest.fixture
    def order(self):
        pydantic = pytest.importorskip("pydantic")

        class Order(pydantic.BaseModel):
            number: int
            note: str = ""

        return Order

    @pytest.mark.parametrize(
        "key", [None, "order:{order.number}", lambda order: f"o:{order.number}"]
    )
    def test_a_model_and_its_dump_make_the_same_key(self, order, key):
        def send(order):
            """Stands for the function of a task."""

        send.__annotations__ = {"order": order}
        model = order(number=5)
        same = {make(key, given, function=send) for given in (model, model.model_dump())}
        assert len(same) == 1
        assert same != {make(key, order(number=6), function=send)}

    def test_an_optional_model(self, order):
        def send(order=None):
            """Stands for the function of a task."""

        send.__annotations__ = {"order": order | None}
        key = "order:{order.number}"
        assert make(key, {"number": "5"}, function=send) == "order:5"

    def test_a_dict_that_is_no_model_is_left_to_the_task(self, order):
        def send(order):
            """Stands for the function of a task."""

        send.__annotations__ = {"order": order}
        assert "number" in make(None, {"number": "not a number"}, function=send)
