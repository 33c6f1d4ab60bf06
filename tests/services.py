"""What tests may find on a machine and do not start themselves: a browser, a database server."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

#: Whether a test whose service is missing fails; without it, it is skipped.
REQUIRED = os.environ.get("LATCH_REQUIRE_SERVICES", "") not in ("", "0")


def missing(what: str) -> NoReturn:
    """Skip the test, or fail where everything must be there."""
    if REQUIRED:
        pytest.fail(f"LATCH_REQUIRE_SERVICES is set, but {what}", pytrace=False)
    pytest.skip(what)
