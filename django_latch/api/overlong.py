"""Work that takes most of its lease without renewing it is counted, and warned about once."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from typing import Final

from django_latch.core import replies

logger = logging.getLogger("django_latch")

#: Share of the lease from which a hold without renewals is too long for comfort.
SHARE: Final = 0.5

#: Most keys that are counted; those that were seen last.
KEYS: Final = 1000

_counts: OrderedDict[str, int] = OrderedDict()


def note(key: str, holder: replies.Holder | None, held_for: float) -> str | None:
    """Count a lease that has just been released, and return the advice it deserves.

    Parameters:
        holder: its record before the release.
        held_for: seconds.
    """
    if holder is None or holder.exp > holder.since + holder.lease:  # it was renewed
        return None
    ttl = holder.lease / 1000
    if held_for <= SHARE * ttl:
        return None
    count = _counts.pop(key, 0) + 1
    _counts[key] = count
    if len(_counts) > KEYS:
        _counts.popitem(last=False)
    advice = (
        f"Held for {held_for:.3g} s of its ttl of {ttl:g} s without a renewal ({count} times so "
        f"far): renew every third of it, or ask for a ttl of {math.ceil(held_for / SHARE)} s."
    )
    if count == 1:
        logger.warning("%r: %s", key, advice)
    return advice
