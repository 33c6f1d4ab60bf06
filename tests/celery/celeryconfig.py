"""Settings of the Celery app of these tests; a worker gets its own ones by the environment."""

from __future__ import annotations

import os

from tests import servers
from tests.celery.harness import BROKER, OWN_BROKER, RESULTS, VISIBILITY

visibility = os.environ.get(VISIBILITY)
broker_url = servers.url(OWN_BROKER if visibility else BROKER)
broker_transport_options = {"visibility_timeout": int(visibility)} if visibility else {}
broker_connection_retry_on_startup = True
result_backend = servers.url(RESULTS)
result_extended = True
worker_prefetch_multiplier = 1
