"""`ActiveLock` outside of the admin: live by itself, empty for everything that means a database."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import NotSupportedError, connection, models
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_latch.models import ActiveLock
from tests.holding import Hold

pytestmark = pytest.mark.django_db


def test_both_managers_show_the_locks(hold: Hold) -> None:
    hold("a", ttl=100, task="x")
    hold("b", ttl=50)
    with CaptureQueriesContext(connection) as queries:
        for manager in (
            ActiveLock.objects,
            ActiveLock._default_manager,
            ActiveLock._base_manager,
        ):
            assert [row.name for row in manager.all()] == ["b", "a"]
            assert manager.count() == 2
            assert manager.get(pk="a").holders[0].owner.task == "x"
            assert [row.name for row in manager.filter(task="x")] == ["a"]
            assert manager.filter(task="x").exists()
            assert manager.order_by("name").first().name == "a"
    assert queries.captured_queries == []


@pytest.mark.parametrize("manager", ["objects", "_base_manager"])
def test_a_database_has_none(hold: Hold, manager: str) -> None:
    hold("a")
    with CaptureQueriesContext(connection) as queries:
        for rows in (
            getattr(ActiveLock, manager).using("default"),
            getattr(ActiveLock, manager).db_manager("default").all(),
            getattr(ActiveLock, manager).all().using("default"),
        ):
            assert isinstance(rows, models.QuerySet)
            assert list(rows.order_by("name").filter(pk__in=["a"]).iterator()) == []
            assert rows.count() == 0
            assert not rows.exists()
            assert rows.delete() == (0, {})
    assert queries.captured_queries == []


@pytest.mark.parametrize(
    "options", [{}, {"use_base_manager": True}, {"use_natural_foreign_keys": True}]
)
@pytest.mark.parametrize("labels", [(), ("django_latch",), ("django_latch.ActiveLock",)])
def test_dumpdata(hold: Hold, options: dict[str, bool], labels: tuple[str, ...]) -> None:
    hold("a")
    out = io.StringIO()
    call_command("dumpdata", *labels, stdout=out, **options)
    dumped = json.loads(out.getvalue())
    assert "django_latch.activelock" not in {record["model"] for record in dumped}
    assert bool(dumped) is not bool(labels)


def test_dumpdata_of_named_locks(hold: Hold) -> None:
    hold("a")
    out = io.StringIO()
    call_command("dumpdata", "django_latch.ActiveLock", primary_keys="a,b", stdout=out)
    assert json.loads(out.getvalue()) == []


def test_loaddata_of_what_was_dumped(hold: Hold, tmp_path: Path) -> None:
    hold("a")
    path = tmp_path / "all.json"
    call_command("dumpdata", output=str(path))
    call_command("loaddata", str(path), verbosity=0)
    assert ActiveLock.objects.count() == 1


def test_loaddata_of_a_lock_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "locks.json"
    path.write_text('[{"model": "django_latch.activelock", "pk": "a", "fields": {}}]')
    with pytest.raises(NotSupportedError, match="never saved or loaded"):
        call_command("loaddata", str(path), verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_flush(hold: Hold) -> None:
    hold("a")
    call_command("flush", interactive=False, verbosity=0)
    assert ActiveLock.objects.count() == 1  # the database was flushed, not the locks
    assert Permission.objects.filter(codename="release_activelock").exists()


def test_a_test_database_can_be_serialized(hold: Hold) -> None:
    hold("a")
    records = json.loads(connection.creation.serialize_db_to_string())
    assert "django_latch.activelock" not in {record["model"] for record in records}
    assert records


@pytest.mark.parametrize("command", ["sqlsequencereset", "sqlflush", "inspectdb"])
def test_other_commands_about_tables(command: str) -> None:
    labels = ["django_latch"] if command == "sqlsequencereset" else []
    out = io.StringIO()
    call_command(command, *labels, stdout=out)
    assert "django_latch_activelock" not in out.getvalue()


@pytest.mark.parametrize("language", ["en", "de", "ar"])
@pytest.mark.parametrize(
    "auto_field", ["django.db.models.BigAutoField", "django.db.models.AutoField"]
)
def test_wants_no_migration(language: str, auto_field: str) -> None:
    with override_settings(LANGUAGE_CODE=language, DEFAULT_AUTO_FIELD=auto_field, USE_TZ=False):
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_makes_no_table() -> None:
    call_command("migrate", "django_latch", "zero", verbosity=0)
    call_command("migrate", "django_latch", verbosity=0)
    assert "django_latch_activelock" not in connection.introspection.table_names()


def test_has_two_permissions() -> None:
    found = Permission.objects.filter(
        content_type__app_label="django_latch", content_type__model="activelock"
    )
    assert sorted(found.values_list("codename", flat=True)) == [
        "release_activelock",
        "view_activelock",
    ]


def test_is_never_saved_or_deleted(hold: Hold) -> None:
    hold("a")
    row = ActiveLock.objects.get(name="a")
    for write in (row.save, row.delete, ActiveLock(name="b").save):
        with pytest.raises(NotSupportedError, match="lock is"):
            write()
    for unsupported in ("create", "update", "bulk_create", "delete", "raw", "aggregate"):
        with pytest.raises(AttributeError):
            getattr(ActiveLock.objects, unsupported)()
    assert ActiveLock.objects.count() == 1


def test_is_the_only_model_without_a_table() -> None:
    unmanaged = [
        model
        for model in apps.get_app_config("django_latch").get_models()
        if not model._meta.managed
    ]
    assert unmanaged == [ActiveLock]
