"""The tables of the reference agree with the code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.dispatch import Signal

import django_latch
from django_latch import conf, exceptions, signals
from django_latch.celery.options import SingleFlight
from django_latch.live import MAXIMUM
from django_latch.management.base import NO_STORE, NOTHING_MATCHED
from django_latch.store import scripts
from tests.docs.pages import DOCS, ROOT, table, words


def test_settings_and_defaults() -> None:
    documented = {
        words(row["key"])[0]: ast.literal_eval(words(row["default"])[0])
        for row in table("reference/settings.md", "key")
    }
    assert documented == {key: default for key, (default, _) in conf.SETTINGS.items()}

    nested = {
        words(row["HTTP key"])[0]: ast.literal_eval(words(row["default"])[0])
        for row in table("reference/settings.md", "HTTP key")
    }
    assert nested == {key: default for key, (default, _) in conf.HTTP.items()}


def test_options_of_single_flight() -> None:
    documented = {
        words(row["option"])[0]: ast.literal_eval(words(row["default"])[0])
        for row in table("howto/celery.md", "option")
    }
    assert documented == {field.name: field.default for field in dataclasses.fields(SingleFlight)}


def test_errors_and_their_tree() -> None:
    classes = {
        name: kind
        for name, kind in vars(exceptions).items()
        if inspect.isclass(kind) and kind.__module__ == exceptions.__name__
    }
    documented = [words(row["error"])[0] for row in table("reference/errors.md", "error")]
    assert sorted(documented) == sorted(classes)

    text = (DOCS / "reference/errors.md").read_text()
    parents = []
    for line in re.findall(r"^([│├└─ ]*)(Latch\w+)( \(also a ValueError\))?$", text, re.MULTILINE):
        depth, name, also = len(line[0]) // 4, line[1], bool(line[2])
        parents[depth:] = [name]
        bases = [base.__name__ for base in classes[name].__bases__]
        assert bases[0] == (parents[depth - 1] if depth else "Exception")
        assert ("ValueError" in bases) is also
        del classes[name]
    assert not classes, "not in the tree"


def test_error_attributes() -> None:
    text = " ".join((DOCS / "reference/errors.md").read_text().split())
    listed = re.search(r"as attributes: (.*?);", text)
    assert listed
    assert sorted(words(listed[1])) == sorted(exceptions.LatchError.__annotations__)


def test_signals_and_their_payloads() -> None:
    source = inspect.getsource(signals)
    real = {name for name, value in vars(signals).items() if isinstance(value, Signal)}
    rows = table("reference/signals.md", "signal")
    assert {words(row["signal"])[0] for row in rows} == real
    for row in rows:
        name = words(row["signal"])[0]
        comment = re.search(rf"((?:^#.*\n)+){name} = Signal\(\)", source, re.MULTILINE)
        assert comment
        payload = re.sub(r"\(.*?\)", "", comment[1].replace("\n#:", "").split("Payload:")[1])
        assert words(row["payload"]) == re.findall(r"\w+", payload)


@pytest.mark.parametrize(
    "name", sorted(name for name, app in get_commands().items() if app == "django_latch")
)
def test_options_of_commands(name: str) -> None:
    documented = {word for row in table("reference/commands.md", name) for word in words(row[name])}
    ours = load_command_class("django_latch", name).create_parser("manage.py", name)
    everybodys = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    assert documented == {
        word
        for action in ours._actions
        if action.dest not in everybodys
        for word in action.option_strings or [action.dest]
    }


def test_exit_codes() -> None:
    documented = [int(row["code"]) for row in table("reference/commands.md", "code")]
    assert documented == [0, 1, 2, NOTHING_MATCHED, NO_STORE]


def test_how_many_locks_a_search_looks_through() -> None:
    text = (DOCS / "howto/admin.md").read_text()
    assert re.search(r"look through (\d+) locks", text)[1] == str(MAXIMUM)  # type: ignore[index]


def test_keys_in_redis() -> None:
    keys = [words(row["key ends in"])[0] for row in table("reference/redis.md", "key ends in")]
    assert [
        key.removesuffix(":NAME") for key in keys if key not in ("W:ID", "A:ACCOUNT", "waits")
    ] == list(scripts.KEYS)


def test_access_control_allows_what_the_scripts_call() -> None:
    source = "".join(path.read_text() for path in (ROOT / "django_latch/lua").glob("*.lua"))
    text = (DOCS / "reference/redis.md").read_text()
    allowed = set(re.findall(r"\+(\w+)", text))
    assert {command.lower() for command in re.findall(r"call\('([A-Z]+)'", source)} <= allowed


def test_check_ids_are_unique_and_documented() -> None:
    ids = re.findall(
        r"""["']django_latch\.([EW]\d{3})["']""",
        "".join(path.read_text() for path in (ROOT / "django_latch").rglob("*.py")),
    )
    assert len(ids) == len(set(ids)), "one id, one finding"
    documented = [words(row["id"])[0] for row in table("reference/checks.md", "id")]
    assert documented == sorted(f"django_latch.{number}" for number in ids)


@pytest.mark.parametrize("name", django_latch.__all__)
def test_public_names_are_on_the_api_page(name: str) -> None:
    text = (DOCS / "reference/api.md").read_text()
    if name == "latch":
        assert "`latch` is the same as `Latch`" in text
        assert django_latch.latch is django_latch.Latch
    elif name.startswith("Latch") and name != "Latch":
        assert getattr(django_latch, name) in vars(exceptions).values()
        assert ".. automodule:: django_latch.exceptions" in text
    else:
        assert re.search(rf"\.\. auto\w+:: django_latch\.{name}$", text, re.MULTILINE)


def test_public_methods_are_on_the_api_page() -> None:
    text = (DOCS / "reference/api.md").read_text()
    listed = re.search(r"autoclass:: django_latch\.Latch\n +:members: (.*)", text)
    assert listed
    methods = {
        name
        for name, value in vars(django_latch.Latch).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert set(listed[1].split(", ")) == methods
