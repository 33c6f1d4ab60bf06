"""The HTTP API: ``path("", include("django_latch.api.urls"))``.

Plain async views. Nothing is open unless ``DJANGO_LATCH["HTTP"]["AUTHENTICATORS"]`` says who may
ask. `openapi.json` beside this file describes every request and answer.
"""

from __future__ import annotations
