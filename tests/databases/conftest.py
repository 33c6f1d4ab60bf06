"""These tests need a server; `make test-databases` names one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests import sql
from tests.celery.conftest import label
from tests.services import missing
from tests.waiting.conftest import crowd

__all__ = ["crowd", "label"]


@pytest.fixture(autouse=True, scope="session")
def _server() -> None:
    """Skip without a server."""
    if not os.environ.get(sql.URL):
        missing(f"{sql.URL} names no database server: use make test-databases")


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[BaseDatabaseWrapper]:
    """A second connection to the same database."""
    made = connections.create_connection("default")
    made.settings_dict = {**connection.settings_dict}
    made.inc_thread_sharing()
    yield made
    made.close()
