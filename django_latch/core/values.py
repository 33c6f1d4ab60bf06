"""What the core knows about values of other kinds, by their shape: it imports no framework."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

# Python refuses to write longer integers in decimal, from a limit that each process may set itself
# (at least 640 digits).
_DECIMAL_BITS = 2000


class ModelKey(NamedTuple):
    """What identifies a Django model instance."""

    label: str
    pk: Any
    database: str | None

    @property
    def is_saved(self) -> bool:
        """Whether the primary key is known; a composite one must be known in full."""
        return None not in self.pk if isinstance(self.pk, tuple) else self.pk is not None


def model_key(value: object) -> ModelKey | None:
    """Return the identity of a Django model instance, or None if ``value`` is not one."""
    # Asked of the class, as a Mock has every attribute and its class has not; and of __class__, as
    # type() of request.user is the wrapper that fetches the user when needed.
    label = getattr(getattr(value.__class__, "_meta", None), "label_lower", None)
    if label is None:
        return None
    instance: Any = value
    return ModelKey(label, instance.pk, instance._state.db)


def is_pydantic(value: object) -> bool:
    """Return whether ``value`` is an instance of a pydantic (2 or later) model."""
    kind = type(value)
    return hasattr(kind, "model_dump") and isinstance(getattr(kind, "model_fields", None), Mapping)


def pydantic_content(value: Any) -> object:
    """Return the fields of a pydantic model as ``model_dump`` names them, but with their values.

    A dump goes through serialisers, which may lose what distinguishes two models (a secret, an
    excluded field, the fields of a subclass); the attributes lose nothing.
    """
    kind = type(value)
    if getattr(kind, "__pydantic_root_model__", False):
        root: object = value.root
        return root
    names = (*kind.model_fields, *kind.model_computed_fields, *(value.model_extra or ()))
    return {name: getattr(value, name) for name in names}


def dataclass_content(value: object) -> dict[str, object] | None:
    """Return the fields that a dataclass instance compares, or None if ``value`` is not one."""
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    fields = dataclasses.fields(value)
    return {field.name: getattr(value, field.name) for field in fields if field.compare}


def integer_text(value: int) -> str:
    """Return ``value`` in decimal, or in hexadecimal where Python may refuse decimal."""
    if value.bit_length() <= _DECIMAL_BITS:
        return int.__repr__(value)
    return int.__format__(value, "#x")


def class_path(kind: type) -> str:
    """Return the dotted path of a class, without the module for built-in ones."""
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
