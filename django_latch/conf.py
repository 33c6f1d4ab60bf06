"""The settings: one dict, ``DJANGO_LATCH``, read whenever a value is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_latch.core.timing import FOREVER, SHORTEST, seconds
from django_latch.exceptions import LatchValueError

#: How much later than a slice's end a living waiter's poll may arrive, in seconds.
MARGIN: Final = 1.0


class SettingError(ImproperlyConfigured):
    """A value in DJANGO_LATCH cannot be used; `key` names it."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"DJANGO_LATCH[{key!r}] {problem}")
        self.key = key


def _duration(least: float, most: float = FOREVER) -> Callable[[str, Any], float]:
    def check(key: str, value: Any) -> float:
        try:
            return seconds(value, "the value", least=least, most=most)
        except LatchValueError as error:
            raise SettingError(key, f"cannot be used: {error}") from None

    return check


def _count(least: int) -> Callable[[str, Any], int]:
    def check(key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**9:
            raise SettingError(
                key, f"must be a whole number from {least} to 10**9, not {value!r:.80}"
            )
        return value

    return check


def _one_of(*words: str) -> Callable[[str, Any], str]:
    def check(key: str, value: Any) -> str:
        if value not in words:
            raise SettingError(
                key, f"must be one of {', '.join(map(repr, words))}, not {value!r:.80}"
            )
        return str(value)

    return check


def _boolean(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(key, f"must be True or False, not {value!r:.80}")
    return value


def _text(key: str, value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and value.isprintable()):
        raise SettingError(key, f"must be printable text, not {value!r:.80}")
    return value


def _alias(key: str, value: Any) -> str:
    if not (isinstance(value, str) and value.isprintable()):
        raise SettingError(key, f"must be the name of an alias in CACHES, not {value!r:.80}")
    return value


def _dotted(key: str, value: Any) -> Callable[..., Any] | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise SettingError(key, f"must be the dotted path of a callable, not {value!r:.80}")
    try:
        target = import_string(value)
    except ImportError as error:
        raise SettingError(key, f"cannot be imported: {error}") from error
    if not callable(target):
        raise SettingError(key, f"names {value!r}, which cannot be called")
    return target  # type: ignore[no-any-return]


def _paths(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) for path in value):
        raise SettingError(key, f"must be a tuple of dotted paths, not {value!r:.80}")
    return tuple(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """The settings of the HTTP API; `max_wait` in seconds."""

    authenticators: tuple[str, ...]
    max_wait: float
    max_locks: int
    max_waits: int


#: The keys of ``DJANGO_LATCH["HTTP"]``.
HTTP: Final[Mapping[str, tuple[Any, Callable[[str, Any], Any]]]] = {
    "AUTHENTICATORS": ((), _paths),
    "MAX_WAIT": (25, _duration(0.1)),
    "MAX_LOCKS": (1000, _count(1)),
    "MAX_WAITS": (100, _count(1)),
}


def _http(key: str, value: Any) -> Http:
    return Http(**_checked(value, HTTP, key + "."))


def _checked(
    given: object, known: Mapping[str, tuple[Any, Callable[[str, Any], Any]]], within: str = ""
) -> dict[str, Any]:
    """The values of a dict of settings, by their names in lower case."""
    if not isinstance(given, Mapping):
        at = f"DJANGO_LATCH[{within[:-1]!r}]" if within else "DJANGO_LATCH"
        raise ImproperlyConfigured(f"{at} must be a dict, not {given!r:.80}")
    for key in given:
        if key not in known:
            near = get_close_matches(str(key).upper(), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise SettingError(f"{within}{key}", f"is not a setting of django_latch{hint}")
    return {
        key.lower(): check(within + key, given.get(key, default))
        for key, (default, check) in known.items()
    }


#: name -> (default, check). The documentation's table is compared with this.
SETTINGS: Final[Mapping[str, tuple[Any, Callable[[str, Any], Any]]]] = {
    "CACHE_ALIAS": ("default", _alias),
    "BACKEND": ("redis", _one_of("redis", "memory")),
    "PREFIX": (None, _text),
    "NAMESPACE": (None, _dotted),
    "TTL": (30, _duration(SHORTEST)),
    "TIMEOUT": (10, _duration(0)),
    "MAX_WAITERS": (100, _count(0)),
    "MAX_TTL": (86400, _duration(SHORTEST)),
    "MAX_TIMEOUT": (3600, _duration(0)),
    "SLICE": (2, _duration(0.1)),
    "LIVE": (3, _duration(0.1)),
    "CLAIM": (3, _duration(0.1)),
    "GRACE": (60, _duration(1)),
    "EVENTS": ("problems", _one_of("none", "problems", "all")),
    "EVENTS_MAX": (10_000, _count(1)),
    "DEADLOCKS": (False, _boolean),
    "TASK_URL": (None, _text),
    "HTTP": ({}, _http),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings; durations in seconds. See the settings page for each."""

    cache_alias: str
    backend: Literal["redis", "memory"]
    prefix: str | None
    namespace: Callable[..., Any] | None
    ttl: float
    timeout: float
    max_waiters: int
    max_ttl: float
    max_timeout: float
    slice: float
    live: float
    claim: float
    grace: float
    events: Literal["none", "problems", "all"]
    events_max: int
    deadlocks: bool
    task_url: str | None
    http: Http


def check_settings(given: object) -> Settings:
    """Check the whole dict.

    Raises:
        SettingError: an unknown key (with a suggestion), a value of a wrong type or range, or
            values that cannot go together.
    """
    checked = Settings(**_checked(given, SETTINGS))
    if checked.slice + MARGIN > checked.live or checked.live > checked.claim:
        raise SettingError(
            "SLICE",
            f"is {checked.slice:g}, LIVE {checked.live:g}, CLAIM {checked.claim:g}: "
            f"SLICE + {MARGIN:g} <= LIVE <= CLAIM must hold, or a living waiter loses its turn",
        )
    for key, most in (("TTL", "MAX_TTL"), ("TIMEOUT", "MAX_TIMEOUT")):
        if getattr(checked, key.lower()) > getattr(checked, most.lower()):
            raise SettingError(key, f"is longer than {most}")
    return checked


class _Conf:
    """Attribute access to the settings as they are now, so `override_settings` works."""

    def __init__(self) -> None:
        self._seen: tuple[dict[str, Any], Settings] | None = None

    def load(self) -> Settings:
        """The checked settings; checked again only when the dict has changed."""
        given = getattr(settings, "DJANGO_LATCH", {})
        # One read of the attribute: another thread may replace it at any time.
        seen = self._seen
        if seen is None or seen[0] != given:
            checked = check_settings(given)
            self._seen = seen = (deepcopy(given), checked)  # it may be changed in place
        return seen[1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)


conf = _Conf()
