"""The owner record: what is kept, what is shown, what it proves."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_latch.core.owner import (
    FIELD,
    LEVELS,
    RECORD,
    Owner,
    boot_id,
    clean,
    is_flat,
    process_started,
    record,
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_here_names_this_process() -> None:
    owner = Owner.here(label="me")
    assert owner.pid == os.getpid()
    assert owner.boot_id == boot_id()
    assert owner.started == process_started(os.getpid())
    assert owner.host
    assert not owner.provably_dead()


@given(
    label=st.text(min_size=1),
    task=st.text(),
    args=st.text(max_size=3 * FIELD) | st.just("x" * (RECORD + 1)),
    retries=st.integers(0, 2**40),
)
def test_the_quick_way_writes_the_same(label: str, task: str, args: str, retries: int) -> None:
    facts = {"label": label, "task": task, "args": args, "retries": retries}
    written = record(**facts)
    assert json.loads(written) == json.loads(Owner.here(**facts).to_json())
    assert len(written) <= RECORD


def test_the_record_of_what_no_process_has_names_none() -> None:
    written = Owner.from_json(record("queued", process=False, task_id="1"))
    assert (written.label, written.task_id, written.host) == ("queued", "1", Owner.here().host)
    assert (written.pid, written.started, written.boot_id, written.pid_ns) == (0, 0, "", "")
    assert not written.provably_dead()


def test_it_survives_the_way_through_the_store() -> None:
    owner = Owner.here(label="größe", task="a.b", retries=3, meta={"x": [1, None]}, args="(1,)")
    assert Owner.from_json(owner.to_json()) == owner
    assert "\n" not in owner.to_json()


@given(anything)
def test_whatever_is_read_becomes_an_owner(value: object) -> None:
    for text in (json.dumps(value), str(value)):
        owner = Owner.from_json(text)
        assert not owner.provably_dead()
        json.dumps(owner.as_dict(), allow_nan=True)
        assert owner.describe()


@given(st.dictionaries(st.sampled_from(["label", "task", "host", "pid", "meta"]), anything))
def test_fields_of_a_wrong_type_are_dropped(facts: dict[str, object]) -> None:
    owner = Owner.from_json(json.dumps(facts))
    assert isinstance(owner.label, str)
    assert isinstance(owner.pid, int)
    owner.describe()


def nested(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_depth_is_told_without_reaching_the_bottom() -> None:
    assert is_flat(nested(LEVELS))
    assert not is_flat(nested(LEVELS + 1))
    assert not is_flat([nested(10**5)])


@pytest.mark.parametrize("levels", [LEVELS + 1, 400, 1900])
def test_facts_too_deep_to_be_shown_are_dropped(levels: int) -> None:
    text = '{"label":"me","meta":' + '{"a":' * levels + "1" + "}" * levels + "}"
    owner = Owner.from_json(text)
    assert "me" in owner.describe()
    assert owner.meta is None
    json.dumps(owner.as_dict())


def test_facts_of_another_version_are_left_out() -> None:
    owner = Owner.from_json('{"label": "me", "colour": {"a": 1}, "size": 3, "shape": "x"}')
    assert owner == Owner(label="me")


def test_records_are_bounded() -> None:
    owner = Owner(label="l" * 10**6, args="a" * 10**6, meta={"m": "x" * 10**6})
    assert len(owner.to_json()) <= RECORD
    assert len(Owner(label="l" * 10**6).to_json()) < 2 * FIELD


@given(st.text())
@example("first\u2028second\u2029third\u3000fourth")
def test_nothing_shown_can_steer_a_terminal_or_a_page(text: str) -> None:
    shown = clean(text)
    assert len(shown) <= FIELD
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for c in shown)
    assert not {c for c in shown if ord(c) < 32 or 0x7F <= ord(c) < 0xA0}
    assert not {c for c in shown if 0x202A <= ord(c) <= 0x202E}


@pytest.mark.parametrize(
    ("owner", "line"),
    [
        (Owner(task="billing.sync", worker="w1@host", pid=12), "billing.sync on w1@host (pid 12)"),
        (Owner(label="import", host="h"), "import on h"),
        (Owner(), "a process"),
        (Owner(label="a\x1b[31mb\u202ec"), "a\ufffd[31mb\ufffdc"),
    ],
)
def test_describe(owner: Owner, line: str) -> None:
    assert owner.describe() == line
