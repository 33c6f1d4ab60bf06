"""The environment of the demo's processes: their own servers and data, nobody else's."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from example_project.environment import sqlite_url

ROOT = Path(__file__).resolve().parent.parent.parent

# Names that Django, Celery, Python or the project would read. What the user has set for work of
# their own, the address of a real Redis for example, must not reach the demo.
FOREIGN = {
    *("ALLOWED_HOSTS", "DATABASE_URL", "DEBUG", "EXAMPLE_DATA", "REDIS_URL", "SECRET_KEY"),
    *("APP", "BROKER_URL", "CONFIG_MODULE", "LOADER", "RESULT_BACKEND", "SKIP_CHECKS", "WORKDIR"),
    *("DJANGO_SETTINGS_MODULE", "DJANGO_ALLOW_ASYNC_UNSAFE", "DJANGO_AUTORELOAD_ENV", "RUN_MAIN"),
    *("C_FORCE_ROOT", "C_WNOCONF", "FORKED_BY_MULTIPROCESSING"),
    *("PYTHONDEVMODE", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONWARNINGS"),
}


def surroundings(given: Mapping[str, str], folder: Path, redis_url: str) -> dict[str, str]:
    """`given` without what is not the demo's, and with the demo's own addresses."""
    kept = {
        name: value
        for name, value in given.items()
        if name not in FOREIGN and not name.startswith("CELERY_")
    }
    path = os.pathsep.join(filter(None, [str(ROOT), given.get("PYTHONPATH")]))
    return kept | {
        "PYTHONPATH": path,
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_DATA": str(folder),
        "DATABASE_URL": sqlite_url(folder / "invoicing.sqlite3"),
        "REDIS_URL": redis_url,
        "SECRET_KEY": secrets.token_urlsafe(40),
    }
