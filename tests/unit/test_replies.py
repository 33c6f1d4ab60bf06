"""Replies: what has not the promised form is an outage, never an answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_latch.core import replies
from django_latch.core.replies import BadReply

PARSERS = [replies.request, replies.renew, replies.end, replies.listing, replies.many]

each_parser = pytest.mark.parametrize("parse", PARSERS, ids=lambda p: p.__name__)

WORDS = st.sampled_from(
    ["granted", "queued", "busy", "full", "ended", "ok", "1", "-5", "x", "{}", ""]
)

ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.booleans(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(WORDS, max_size=9).map("\n".join),
    st.lists(WORDS, max_size=9).map(lambda words: "\n".join(words).encode()),
    st.lists(st.one_of(st.integers(), st.text(), st.binary(), st.none()), max_size=6),
)


@each_parser
@given(reply=ANYTHING)
def test_any_reply_is_understood_or_bad(parse: Any, reply: object) -> None:
    with suppress(BadReply):  # any other error would be ours
        assert parse(reply) is not None


@each_parser
@pytest.mark.parametrize(
    "reply", [None, b"", "", "OK", 1, [], [None], True, "granted", "ok\n1"], ids=repr
)
def test_null_and_short_replies_are_bad(parse: Any, reply: object) -> None:
    with pytest.raises(BadReply):
        parse(reply)


@pytest.mark.parametrize(
    "record",
    [
        "held|1|2|3|4|5|6|7|8||{}",
        "queued|1|2|3|4|5|6|7|8|0f|{}",
        'offered|1|2|3|4|5|6|7|8|0f|{"a":"|"}',
        "ended|released|1|2|3",
        "ended|never_held|1|2|3",
    ],
)
def test_records_the_scripts_can_read(record: str) -> None:
    assert replies.is_record(record)


@pytest.mark.parametrize(
    "record",
    ["", "held", "held|1|2", "held|x|2|3|4|5|6|7|8||", "ended|x", "ended|RELEASED|1|2|3", "|||"],
)
def test_records_the_scripts_cannot_read(record: str) -> None:
    assert not replies.is_record(record)
