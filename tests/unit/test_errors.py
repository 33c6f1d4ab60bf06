"""Errors of ours: the tree, their facts, and how they travel."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import pytest

from django_latch import exceptions
from django_latch.core.errors import JobFinished
from django_latch.exceptions import (
    LatchBusy,
    LatchDeadlock,
    LatchError,
    LatchNameError,
    LatchNotAcquired,
    LatchQueueFull,
    LatchTimeout,
    LatchValueError,
)

EVERY = [
    kind
    for _, kind in sorted(vars(exceptions).items())
    if inspect.isclass(kind) and issubclass(kind, LatchError)
] + [JobFinished]

FACTS = {
    "name": "größe:木",
    "waited": 1.25,
    "position": 3,
    "holder": {"label": "nightly", "pid": 7, "fence": 2**50},
    "ttl_remaining": 4.5,
    "reason": "busy",
}

every = pytest.mark.parametrize("kind", EVERY)


@every
def test_pickle_keeps_everything(kind: type[LatchError]) -> None:
    error = kind("what happened", FACTS)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is kind
        assert again.args == error.args
        assert str(again) == "what happened"
        assert {key: getattr(again, key) for key in FACTS} == FACTS
    assert copy.copy(error).args == error.args
    assert copy.deepcopy(error).holder == FACTS["holder"]


@every
def test_json_keeps_everything(kind: type[LatchError]) -> None:
    """As Celery's result backend does it: the class by name, and its arguments."""
    error = kind("what happened", FACTS, extra="more")
    again = kind(*json.loads(json.dumps(error.args)))
    assert {key: getattr(again, key) for key in FACTS} == FACTS
    assert again.extra == "more"  # type: ignore[attr-defined]
    assert repr(again) == repr(error)


@every
def test_the_docstring_is_the_default_message(kind: type[LatchError]) -> None:
    error = kind()
    assert str(error) == (kind.__doc__ or "").splitlines()[0]
    assert str(error).endswith(".")
    assert [getattr(error, key) for key in FACTS] == [None] * len(FACTS)
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_the_tree() -> None:
    for kind in (LatchBusy, LatchTimeout, LatchQueueFull, LatchDeadlock, JobFinished):
        assert issubclass(kind, LatchNotAcquired)
    for kind in (LatchNameError, LatchValueError):
        assert issubclass(kind, ValueError)
    for kind in EVERY:
        assert issubclass(kind, LatchError)
        assert not issubclass(kind, (OSError, TimeoutError))


def test_celery_carries_them_both_ways() -> None:
    exceptions_of_celery = pytest.importorskip("celery.utils.serialization")
    error = LatchBusy("what happened", FACTS)
    carried = exceptions_of_celery.get_pickleable_exception(error)
    assert type(carried) is LatchBusy
    assert carried.args == error.args
