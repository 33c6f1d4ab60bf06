"""The database of the tests: SQLite in memory, or the one of a server."""

from __future__ import annotations

import os
from typing import Any

from example_project import environment

#: The URL of a database that the run makes, and drops at its end; processes that tests start
#: use it too. See tests/databases.
URL = "LATCH_TEST_SQL"


def databases() -> dict[str, Any]:
    """Django's DATABASES."""
    url = os.environ.get(URL)
    if not url:
        return {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    found = environment.database(url)
    if found["ENGINE"].endswith("mysql"):
        import pymysql  # speaks the protocol itself: mysqlclient needs a compiler

        pymysql.install_as_MySQLdb()
    return {"default": {**found, "TEST": {"NAME": found["NAME"]}}}
