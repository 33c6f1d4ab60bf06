"""Reads the addresses of other servers from environment variables, in the usual URL form."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

ENGINES = {
    "sqlite": "django.db.backends.sqlite3",
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
    "mysql": "django.db.backends.mysql",
    "mariadb": "django.db.backends.mysql",
}

# WAL lets the worker write while the web server reads; IMMEDIATE makes writers queue at BEGIN
# instead of failing in the middle of a transaction.
SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
}


def database(url: str) -> dict[str, Any]:
    """Django's settings for `url`: ``postgres://user:password@host:5432/name?option=value``.

    A SQLite file is ``sqlite:///relative`` or ``sqlite:////absolute``.

    Raises:
        ValueError: the scheme is not one of ENGINES, or the name is missing. The message does
            not repeat the URL, which may hold a password.
    """
    parts = urlsplit(url)
    engine = ENGINES.get(parts.scheme)
    name = unquote(parts.path.removeprefix("/"))
    if engine is None or not name:
        known = ", ".join(ENGINES)
        raise ValueError(f"DATABASE_URL must be SCHEME://.../NAME with a scheme of: {known}")
    if parts.scheme == "sqlite":
        return {"ENGINE": engine, "NAME": name, "OPTIONS": dict(SQLITE_OPTIONS)}
    return {
        "ENGINE": engine,
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, for `database`."""
    return f"sqlite:///{quote(str(path))}"


def redis_url(url: str, offset: int) -> str:
    """`url` with its database number (0 where there is none) raised by `offset`.

    Raises:
        ValueError: the path of the URL is not a database number.
    """
    parts: SplitResult = urlsplit(url)
    number = parts.path.strip("/") or "0"
    if not number.isdecimal():
        raise ValueError("REDIS_URL must be redis://[user:password@]host:port[/database number]")
    return parts._replace(path=f"/{int(number) + offset}").geturl()
