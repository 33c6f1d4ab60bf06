"""Templates: lock names with fields that a call's arguments fill, as in ``sync:{account_id}``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from string import Formatter
from typing import Any
from uuid import UUID

from django_latch.core.names import (
    UNPRINTABLE,
    check_characters,
    check_name,
    fit_name,
    percent_encode,
    plain_text,
    shown,
)
from django_latch.core.values import class_path, integer_text, model_key
from django_latch.exceptions import LatchNameError

# ":" separates the parts of a name, so a value must not bring its own.
_UNSAFE = re.compile(rf"[%:{{}}{UNPRINTABLE}]")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SYNTAX = (
    "a field is {parameter} or {parameter.attribute}, with no attribute that starts with an "
    "underscore, no index, no conversion, no format spec and no doubled braces"
)
_ALLOWED = (
    "str, int, bool, UUID, Decimal, date, datetime, time, an Enum of these, or a saved model "
    "instance"
)
# The first kind that fits counts: a bool is an int, a datetime is a date.
_TEXTS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, str.__str__),
    (bool, lambda value: "true" if value else "false"),
    (int, integer_text),
    (UUID, UUID.__str__),
    (Decimal, Decimal.__str__),
    (datetime, datetime.isoformat),
    (date, date.isoformat),
    (time, time.isoformat),
)


@dataclass(frozen=True)
class Template:
    """A lock's name with fields, checked when it is made and never given to ``str.format``.

    In the value of a field ``%``, ``:``, braces and control characters are percent-encoded; all
    else stands as it is, so ``"sync:{account_id}"`` with 42 or ``"42"`` is the lock ``sync:42``.
    Separate fields that hold free text by ``:``, the one separator that values cannot contain.

    Parameters:
        text: the name; a field is ``{parameter}`` or ``{parameter.attribute}``.

    Raises:
        LatchNameError: the text breaks the rules of templates or names.
    """

    text: str
    #: The fields in order, as dotted names.
    fields: tuple[str, ...] = field(init=False, compare=False)
    _pieces: tuple[tuple[str, str | None], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        pieces = _parse(self.text)
        object.__setattr__(self, "_pieces", pieces)
        object.__setattr__(self, "fields", tuple(name for _, name in pieces if name is not None))

    def check(self, signature: inspect.Signature, what: str) -> None:
        """Check the fields against the parameters of what will be called.

        Parameters:
            signature: of the function or task, without a bound ``self``.
            what: what has that signature, for the message: ``"task billing.sync"``.

        Raises:
            LatchNameError: a field is no parameter, or is ``*args`` or ``**kwargs``.
        """
        kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
        known = [name for name, kind in kinds.items() if kind not in _VARIADIC]
        for name in (dotted.partition(".")[0] for dotted in self.fields):
            if name in known:
                continue
            problem = "collects several arguments" if name in kinds else "is not a parameter"
            raise LatchNameError(
                f"the template {shown(self.text)} does not fit {what}: {name!r} {problem}; "
                f"use one of: {', '.join(known) or '(it has none)'}"
            )

    def render(self, arguments: Mapping[str, object]) -> str:
        """Return the name for a call.

        Parameters:
            arguments: the call's arguments by parameter name, defaults filled in.

        Returns:
            a valid name; one that would be too long is cut and completed by a digest.

        Raises:
            TypeError: a value is of a kind that templates do not take; names the parameter.
            LatchNameError: all values together give an empty name.
        """
        parts = (
            literal if dotted is None else literal + encode_value(_read(arguments, dotted), dotted)
            for literal, dotted in self._pieces
        )
        name = "".join(parts)
        if not name:
            raise LatchNameError(f"the template {shown(self.text)} gives an empty name")
        return fit_name(name)


def encode_value(value: object, parameter: str) -> str:
    """Return the text of a field's value.

    Parameters:
        value: a str, int, bool (``true``, ``false``), UUID, Decimal, date, datetime, time (ISO
            8601), an Enum (its value) or a saved model instance (its primary key).
        parameter: the name of the value, for the message.

    Raises:
        TypeError: anything else, ``None`` included; names the parameter and what is allowed.
    """
    if isinstance(value, Enum):
        return encode_value(value.value, parameter)
    for kind, text in _TEXTS:
        # Not isinstance, which takes a lazy object for what it wraps.
        if issubclass(type(value), kind):
            return percent_encode(text(value), _UNSAFE)
    key = model_key(value)
    if key is not None and key.is_saved:
        return encode_value(key.pk, f"{parameter}.pk")
    problem = "is None" if value is None else f"is of type {class_path(type(value))}"
    if key is not None:
        problem += " and has no primary key yet; save it first"
    raise TypeError(
        f"cannot put {parameter!r} into a lock's name: it {problem}. Allowed: {_ALLOWED}"
    )


def _parse(text: str) -> tuple[tuple[str, str | None], ...]:
    """Split a template into pairs of literal text and the field after it."""
    text = plain_text(text)
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise LatchNameError(f"the template {shown(text)} is malformed: {error}") from error
    fields = [name for _, name, _, _ in pieces if name is not None]
    if not fields:
        return ((check_name(text), None),)
    # What was split must be the whole text: a spec, a conversion or a doubled brace is lost here.
    plain = "".join(t if name is None else f"{t}{{{name}}}" for t, name, _, _ in pieces)
    if plain != text or not all(map(_is_field, fields)):
        raise LatchNameError(f"the template {shown(text)} is refused: {_SYNTAX}")
    for (_, before, _, _), (literal, after, _, _) in pairwise(pieces):
        if before is not None and after is not None and not literal:
            raise LatchNameError(
                f"the template {shown(text)} needs text, such as ':', between the fields "
                f"{before!r} and {after!r}"
            )
    return tuple((check_characters(literal), name) for literal, name, _, _ in pieces)


def _is_field(name: str) -> bool:
    parameter, *attributes = name.split(".")
    return parameter.isidentifier() and all(
        part.isidentifier() and not part.startswith("_") for part in attributes
    )


def _read(arguments: Mapping[str, object], dotted: str) -> object:
    """Return the value of a field: a parameter, or plain attributes of one."""
    parameter, *attributes = dotted.split(".")
    if parameter not in arguments:
        raise TypeError(f"the lock's name needs the argument {parameter!r}")
    value = arguments[parameter]
    for attribute in attributes:
        owner = class_path(type(value))
        try:
            value = getattr(value, attribute)
        except AttributeError as error:
            message = f"cannot read {dotted!r} for a lock's name: {owner} has no {attribute!r}"
            raise TypeError(message) from error
        if callable(value):
            raise TypeError(
                f"cannot read {dotted!r} for a lock's name: {attribute!r} of {owner} is callable, "
                "a template calls nothing"
            )
    return value
