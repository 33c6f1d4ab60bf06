"""What the database keeps: tokens and the admin's log, with every character and every length."""

from __future__ import annotations

import io
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from django_latch.models import ActiveLock, ApiToken
from tests import sql
from tests.admin.pages import ask
from tests.holding import holding

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

VENDORS = {"postgres": "postgresql", "mariadb": "mysql"}


def test_this_is_the_server_that_was_meant() -> None:
    url = urlsplit(os.environ[sql.URL])
    assert connection.vendor == VENDORS[url.scheme]
    assert connection.settings_dict["NAME"] == url.path.removeprefix("/")


@pytest.mark.parametrize("name", ["x" * 255, "🔒" * 255, "名前 Ω ñ"])
def test_the_log_keeps_every_name(admin_client: Client, name: str) -> None:
    with holding() as hold:
        hold(name)
        action, data = ask(admin_client, name)
        reason = "🔒 " + "ñ" * 198
        assert admin_client.post(action, {**data, "reason": reason}).status_code == 302
    entry = LogEntry.objects.get()
    assert entry.object_id == name
    assert entry.change_message.endswith(reason)


@pytest.mark.parametrize("other", ["Sync", "sync ", "sýnc"])
def test_a_history_is_of_one_lock_only(admin_client: Client, other: str) -> None:
    with holding() as hold:
        for name, reason in (("sync", "the one"), (other, "the other")):
            hold(name)
            action, data = ask(admin_client, name)
            admin_client.post(action, {**data, "reason": reason})
    for name, reason in (("sync", "the one"), (other, "the other")):
        url = reverse("admin:django_latch_activelock_history", args=(quote(name),))
        entries = admin_client.get(url).context["action_list"]
        assert [entry.change_message.partition("Reason: ")[2] for entry in entries] == [reason]
        assert entries.paginator.count == 1


def test_tokens_survive_a_dump_and_a_flush(tmp_path: Path) -> None:
    token = ApiToken(account="ci", scopes="sync\ndéploy:🔒")
    secret = token.issue()
    path = tmp_path / "tokens.json"
    call_command("dumpdata", "django_latch", output=str(path))
    ApiToken.objects.all().delete()
    call_command("loaddata", str(path), verbosity=0)
    found = ApiToken.objects.get(digest=ApiToken.digest_of(secret))
    assert (found.account, found.scopes) == ("ci", "sync\ndéploy:🔒")
    assert abs(found.created_at - token.created_at) < timedelta(milliseconds=1)  # as JSON has it


@pytest.mark.django_db(transaction=True)
def test_migrations_go_back_and_forth() -> None:
    with holding() as hold:
        hold("mail")
        for _ in range(2):
            call_command("migrate", "django_latch", "zero", verbosity=0)
            assert ApiToken._meta.db_table not in connection.introspection.table_names()
            call_command("migrate", "django_latch", verbosity=0)
            assert ApiToken._meta.db_table in connection.introspection.table_names()
        assert ActiveLock.objects.count() == 1
    out = io.StringIO()
    call_command("makemigrations", check=True, dry_run=True, verbosity=1, stdout=out)
    assert "No changes detected" in out.getvalue()
