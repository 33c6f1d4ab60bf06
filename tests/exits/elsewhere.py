"""Settings of a worker whose locks are on another server than everything else."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import CACHES

#: Environment variable: the URL of that server.
LOCKS = "LATCH_EXITS_LOCKS"

if LOCKS in os.environ:  # not where a test reads the name of the variable
    CACHES = {**CACHES, "locks": {**CACHES["locks"], "LOCATION": f"{os.environ[LOCKS]}/0"}}
