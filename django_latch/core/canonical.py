"""Canonical arguments: one name for each different call, where the user gave no key.

Two calls share a name exactly if a task could not tell their arguments apart. Types count: ``1``,
``"1"``, ``True`` and ``1.0`` differ, so do ``Decimal("1")`` and ``Decimal("1.0")``, or one instant
in two UTC offsets. What JSON, Celery's default serialiser, makes equal on the way is equal here, so
that a caller and a worker find the same name:

* a tuple is a list;
* a dict's key that is an int, float, bool or None is the text that JSON makes of it;
* a member of a str, int or float Enum is its value, and a time zone is its UTC offset;
* a pydantic model is the dict of its fields: Celery sends its JSON dump. A dump has the same name
  as the model if the fields are of JSON's own types; a UUID in a model is a str in its dump.

JSON refuses sets, timedeltas, dataclasses, model instances, members of plain Enums and dicts with
other keys, so only other serialisers carry them; pickle changes nothing that counts. A frozenset is
a set, the order of sets and dicts does not count, nor does a dataclass field with compare=False.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Any
from uuid import UUID

from django_latch.core.names import UNPRINTABLE, fit_name, percent_encode
from django_latch.core.values import (
    class_path,
    dataclass_content,
    integer_text,
    is_pydantic,
    model_key,
    pydantic_content,
)

MAX_DEPTH = 64
MAX_VALUES = 1_000_000

_UNSAFE_IN_LABEL = re.compile(rf"[%({{}}{UNPRINTABLE}]")
_UNSAFE_IN_TEXT = re.compile(rf"[%\"{{}}{UNPRINTABLE}]")


def bind(
    signature: inspect.Signature, args: Iterable[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Return a call's arguments by parameter name, defaults filled in.

    Parameters:
        signature: of what is called, without a bound ``self``.
        args: the positional arguments.
        kwargs: the keyword arguments.

    Raises:
        TypeError: the arguments do not fit the signature.
    """
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def canonical(label: str, arguments: Mapping[str, object]) -> str:
    """Return the name of a call: ``billing.sync(account_id=42,full=False)``.

    The arguments stand in the name in the clear, and so in the admin and in logs; give a key where
    they are secret. A name that would be too long is cut and completed by a digest.

    Parameters:
        label: what is called, such as the task's name.
        arguments: its arguments by parameter name, as :func:`bind` gives them.

    Raises:
        TypeError: an argument has no canonical form; names the parameter.
    """
    # Sorted, so that parameters may change places between two releases of a project.
    pairs = (
        f"{_name(name)}={_Encoder(name).encode(arguments[name])}" for name in sorted(arguments)
    )
    return fit_name(f"{percent_encode(label, _UNSAFE_IN_LABEL)}({','.join(pairs)})")


def _text(value: str) -> str:
    return f'"{percent_encode(str.__str__(value), _UNSAFE_IN_TEXT)}"'


def _name(parameter: str) -> str:
    return parameter if parameter.isidentifier() else _text(parameter)


# Base class methods throughout: a subclass may print itself as it likes, transports do not ask it.
# The first kind that fits counts: a bool is an int, a datetime is a date.
_SCALARS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (type(None), repr),
    (bool, repr),
    (int, integer_text),
    (float, float.__repr__),
    (str, _text),
    (bytes, lambda value: f"bytes({bytes.hex(value)})"),
    (UUID, lambda value: f"UUID({value.hex})"),
    (Decimal, lambda value: f"Decimal({Decimal.__str__(value)})"),
    (datetime, lambda value: f"datetime({datetime.isoformat(value)})"),
    (date, lambda value: f"date({date.isoformat(value)})"),
    (time, lambda value: f"time({time.isoformat(value)})"),
    (timedelta, lambda value: f"timedelta({value.days},{value.seconds},{value.microseconds})"),
)


class _Encoder:
    """Encodes one argument. Each kind of value has a form of its own, so no two forms meet."""

    def __init__(self, parameter: str) -> None:
        self.parameter = parameter
        self.values_left = MAX_VALUES

    def encode(self, value: object, depth: int = 0) -> str:
        self.values_left -= 1
        if depth > MAX_DEPTH or self.values_left < 0:
            raise self.error("is nested too deeply, is too large, or contains itself")
        for scalar, text in _SCALARS:
            # Not isinstance, which takes a lazy object for what it wraps.
            if issubclass(type(value), scalar):
                return text(value)
        if isinstance(value, (list, tuple)):
            return f"[{','.join(self._all(value, depth))}]"
        if isinstance(value, (set, frozenset)):
            return f"set({','.join(sorted(self._all(value, depth)))})"
        if isinstance(value, dict):
            pairs = (f"{self._key(k, depth)}:{self.encode(v, depth + 1)}" for k, v in value.items())
            return f"dict({','.join(sorted(pairs))})"
        if is_pydantic(value):
            return self.encode(pydantic_content(value), depth + 1)
        return self._object(value, depth)

    def _all(self, values: Iterable[object], depth: int) -> list[str]:
        return [self.encode(value, depth + 1) for value in values]

    def _key(self, key: object, depth: int) -> str:
        if isinstance(key, int) and not isinstance(key, bool):
            return _text(integer_text(key))
        if key is None or isinstance(key, (bool, float)):
            return _text(json.dumps(key))
        return self.encode(key, depth + 1)

    def _object(self, value: object, depth: int) -> str:
        path = class_path(type(value))
        parts: tuple[object, ...]
        if isinstance(value, Enum):
            # By name, as a value may be anything; but a union of flags need not have a name.
            kind, parts = "Enum", (path, value.value if isinstance(value, Flag) else value.name)
        elif (key := model_key(value)) is not None:
            if not key.is_saved:
                raise self.error(f"holds a {path} without a primary key; save it first")
            kind, parts = "Model", key
        elif (content := dataclass_content(value)) is not None:
            kind, parts = "dataclass", (path, content)
        else:
            raise self.error(f"holds a {path}, which has no canonical form")
        return f"{kind}({','.join(self._all(parts, depth))})"

    def error(self, problem: str) -> TypeError:
        return TypeError(
            f"cannot make a lock's name from the argument {self.parameter!r}: it {problem}. "
            "Or give key=, a template or a callable"
        )
