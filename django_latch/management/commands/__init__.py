"""The commands: latch_list and latch_clear."""

from __future__ import annotations
