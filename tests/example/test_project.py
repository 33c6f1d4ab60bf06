"""The project is sound by Django's own judgement, and reads its addresses rightly."""

from __future__ import annotations

import pytest

from example_project import environment

MANAGE = "example_project/manage.py"


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--fail-level", "WARNING", "--database", "default"),
        ("makemigrations", "--check", "--dry-run"),
    ],
)
def test_django_finds_nothing_to_complain_about(program, tmp_path, arguments):
    manage = program("-W", "error", MANAGE, *arguments, **own(tmp_path))
    assert manage.finish() == 0, manage.output


def test_sqlite_runs_in_wal_mode(program, tmp_path):
    code = (
        "from django.db import connection\n"
        "with connection.cursor() as cursor:\n"
        "    print(cursor.execute('PRAGMA journal_mode').fetchone()[0])\n"
    )
    manage = program(MANAGE, "shell", "-v", "0", "-c", code, **own(tmp_path))
    assert manage.finish() == 0, manage.output
    assert manage.lines[-1] == "wal"


def own(folder):
    return {"DJANGO_SETTINGS_MODULE": "example_project.settings", "EXAMPLE_DATA": str(folder)}


def test_a_database_url_names_everything():
    url = "postgres://pay%40roll:p%3Ass@db.example:5433/invoicing?sslmode=require"
    assert environment.database(url) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "invoicing",
        "USER": "pay@roll",
        "PASSWORD": "p:ss",
        "HOST": "db.example",
        "PORT": 5433,
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_sqlite_file_with_odd_characters_in_its_path(tmp_path):
    path = tmp_path / "50% of #1?" / "data.sqlite3"
    assert environment.database(environment.sqlite_url(path))["NAME"] == str(path)


@pytest.mark.parametrize("url", ["oracle://me:secret@host/name", "postgres://me:secret@host", "x"])
def test_a_database_url_that_cannot_be_used_is_not_repeated(url):
    with pytest.raises(ValueError, match="DATABASE_URL must be") as caught:
        environment.database(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379/1"),
        ("redis://127.0.0.1:6379/", "redis://127.0.0.1:6379/1"),
        ("rediss://me:secret@host/4?timeout=3", "rediss://me:secret@host/5?timeout=3"),
    ],
)
def test_the_next_redis_database(url, expected):
    assert environment.redis_url(url, 1) == expected


def test_a_redis_url_with_another_path_is_refused():
    with pytest.raises(ValueError, match="REDIS_URL must be") as caught:
        environment.redis_url("redis://me:secret@host/locks", 1)
    assert "secret" not in str(caught.value)
