"""Settings of the Celery app of these tests; a worker gets its own ones by the environment."""

from __future__ import annotations

import json
import os

from tests import servers
from tests.celery.harness import BROKER, RESULTS, TRANSPORT

broker_url = servers.url(BROKER)
broker_transport_options = json.loads(os.environ.get(TRANSPORT, "{}"))
broker_connection_retry_on_startup = True
result_backend = servers.url(RESULTS)
result_extended = True
worker_prefetch_multiplier = 1
