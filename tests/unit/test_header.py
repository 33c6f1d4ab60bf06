"""What a message carries for us, as it may come from anybody."""

from __future__ import annotations

from typing import Any

import pytest

from django_latch.celery.header import HEADER, Carried, read

FULL = Carried(
    task_id="1", key="k", tenant="t", waits=2, off=True, token="secret", carries=True, made=7
)


def test_it_comes_back_as_it_was_written() -> None:
    assert read({HEADER: FULL.to_header()}, "1") == FULL
    assert read({HEADER: Carried(task_id="1", key="k").to_header()}, "1") == Carried(
        task_id="1", key="k"
    )
    assert "secret" not in repr(FULL)


@pytest.mark.parametrize(
    "headers",
    [None, {}, {HEADER: None}, {HEADER: "1"}, {HEADER: {"task_id": "2"}}, {HEADER: {"key": "k"}}],
)
def test_what_is_not_of_this_job_is_nothing(headers: Any) -> None:
    assert read(headers, "1") is None
    assert read(headers, None) is None


def test_facts_of_a_wrong_type_and_unknown_ones_are_left_out() -> None:
    facts = {
        "task_id": "1",
        "key": 5,
        "tenant": ["t"],
        "waits": "2",
        "made": 1.5,
        "off": 1,
        "carries": "yes",
        "token": b"x",
        "more": "of a later version",
    }
    assert read({HEADER: facts}, "1") == Carried(task_id="1")
