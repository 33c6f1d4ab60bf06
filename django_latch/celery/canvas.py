"""What the options of a call tell of the canvas that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_member(options: Mapping[str, Any]) -> bool:
    """Whether a message is a member of a chain, group or chord.

    Such a signature was frozen (it has a ``reply_to``), so it has an id that somebody may wait for
    already: to decline it, or to fail here, would leave them waiting for ever.

    Parameters:
        options: of the call.
    """
    return bool(
        "reply_to" in options
        or "chain" in options
        or options.get("chord")
        or options.get("group_id")
    )


def is_link(options: Mapping[str, Any]) -> bool:
    """Whether Celery sends it for a task that ends just now and has named it as its ``link``.

    An error at the sending would be taken for the result of that task.

    Parameters:
        options: of the call.
    """
    return "parent_id" in options and not is_member(options)
