"""The name of a call's lock: made once, from the arguments as the task will see them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django_latch.core.canonical import canonical
from django_latch.core.names import fit_name
from django_latch.core.templates import Template
from django_latch.exceptions import LatchNameError
from django_latch.namespace import qualified

if TYPE_CHECKING:
    from django_latch.celery.options import SingleFlight


class Keys:
    """Makes the keys of one task.

    Parameters:
        flight: the task's options.
        function: what the task runs.
        bound: whether its first parameter is the task itself, which is no argument of a call.
    """

    def __init__(self, flight: SingleFlight, function: Callable[..., Any], *, bound: bool) -> None:
        self._key = flight.key
        self._function = function
        self._bound = bound

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of a call."""
        whole = inspect.signature(self._function)
        return whole.replace(parameters=list(whole.parameters.values())[1 if self._bound else 0 :])

    @cached_property
    def _template(self) -> Template | None:
        return Template(self._key) if isinstance(self._key, str) else None

    @cached_property
    def _models(self) -> dict[str, Any]:
        """Parameters that are pydantic models: senders may pass one, workers find its dict."""
        try:
            hints = typing.get_type_hints(self._function)
        except (NameError, TypeError, AttributeError):  # names that only a type checker imports
            hints = {name: p.annotation for name, p in self.signature.parameters.items()}
        kinds = {name: _without_none(hint) for name, hint in hints.items()}
        return {name: kind for name, kind in kinds.items() if hasattr(kind, "model_validate")}

    def check(self, what: str) -> None:
        """Check a template against the signature.

        Parameters:
            what: whose signature it is, for the message.

        Raises:
            LatchNameError: it has a field that is no parameter.
        """
        if self._template is not None:
            self._template.check(self.signature, what)

    def fitted(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> inspect.BoundArguments | None:
        """The arguments by the signature, for `name`; None where they do not fit it at all."""
        try:
            return self.signature.bind(*args, **kwargs)
        except TypeError:
            return None

    def make(
        self, label: str, args: Sequence[Any], kwargs: Mapping[str, Any], tenant: str | None = None
    ) -> str:
        """The lock's name for a call.

        Parameters:
            label: the task's name, used where no key was given.
            args, kwargs: the call's arguments, without the task itself.
            tenant: whose lock it is, as `namespace.tenant` says it; None without tenants.

        Raises:
            TypeError: the arguments do not fit the signature, or one cannot be part of a name.
            LatchNameError: the key made is no valid name.
        """
        return self.name(label, self.signature.bind(*args, **kwargs), tenant)

    def name(self, label: str, bound: inspect.BoundArguments, tenant: str | None = None) -> str:
        """The same for arguments that `fitted` has bound."""
        self._restore_models(bound.arguments)
        if callable(self._key):
            key = _checked(self._key(*bound.args, **bound.kwargs))
        else:
            bound.apply_defaults()
            template, arguments = self._template, bound.arguments
            key = template.render(arguments) if template else canonical(label, arguments)
        return qualified(key, tenant)

    def _restore_models(self, arguments: dict[str, Any]) -> None:
        for name, model in self._models.items():
            if isinstance(arguments.get(name), dict):
                try:
                    arguments[name] = model.model_validate(arguments[name])
                except ValueError:  # the task will say so itself, by its own options
                    continue


def _checked(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise LatchNameError(f"the key function returned {key!r:.80}; return the lock's name")
    return fit_name(key)


def _without_none(hint: Any) -> Any:
    """``Model`` for ``Model | None``; any other hint as it is."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in typing.get_args(hint) else hint
