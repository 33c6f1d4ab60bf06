"""The NAMESPACE setting: a tenant's locks are its own."""

from __future__ import annotations

from django_latch.conf import conf
from django_latch.core.names import fit_name
from django_latch.core.templates import encode_value


def tenant() -> str | None:
    """What ``DJANGO_LATCH["NAMESPACE"]`` says here and now, as it stands before a name.

    Raises:
        TypeError: it is nothing that can be part of a name.
    """
    callable_ = conf.load().namespace
    value = callable_() if callable_ else None
    return None if value is None else encode_value(value, "NAMESPACE")


def qualified(name: str, tenant: str | None) -> str:
    """The name a tenant's lock has in the store.

    A tenant has no ``:`` of its own (it is encoded), so no tenant's name is another tenant's.
    """
    return name if tenant is None else fit_name(f"{tenant}:{name}")
