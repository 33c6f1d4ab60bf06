"""API tokens by their digest, remembered for a few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django_latch.api.accounts import Account, Right
from django_latch.core.timing import now

if TYPE_CHECKING:
    from django_latch.models import ApiToken

#: Seconds for which a look-up counts: a revoked token works no longer than that.
REMEMBERED: Final = 10.0

#: Most look-ups remembered, those of unknown tokens among them.
MOST: Final = 1000

_known: dict[str, tuple[Account | None, float]] = {}


async def account_of(secret: str) -> Account | None:
    """The account of an API token; None if it is unknown or revoked.

    Raises:
        django.db.Error: the database gave no answer.
    """
    from django_latch.models import ApiToken

    digest = ApiToken.digest_of(secret)
    seen = _known.get(digest)
    if seen is not None and now() < seen[1]:
        return seen[0]
    asked = now()
    row = await ApiToken.objects.filter(digest=digest, revoked_at=None).afirst()
    account = None if row is None else _account(row)
    while len(_known) >= MOST:
        del _known[next(iter(_known))]
    _known[digest] = account, asked + REMEMBERED
    return account


def _account(row: ApiToken) -> Account:
    rights: set[Right] = {"read"}
    if not row.read_only:
        rights.add("write")
        if row.may_force:
            rights.add("force")
    scopes = tuple(scope for line in row.scopes.split("\n") if (scope := line.strip()))
    return Account(row.account, scopes, frozenset(rights))
