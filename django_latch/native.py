"""Threads and locks of the operating system, also where gevent or eventlet replace Python's.

A heartbeat that is a greenlet stops whenever another greenlet computes: it must be a thread.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Any


def _original(name: str) -> Any:
    """`name` of the module _thread as it was before any monkey patching."""
    if "gevent.monkey" in sys.modules:
        return sys.modules["gevent.monkey"].get_original("_thread", name)
    if "eventlet.patcher" in sys.modules:
        return getattr(sys.modules["eventlet.patcher"].original("_thread"), name)
    return getattr(_thread, name)


#: Makes a plain lock. Never held across input or output, so a greenlet never waits for it long.
allocate_lock: Callable[[], threading.Lock] = _original("allocate_lock")

#: The same, for what a destructor may call while its thread has the lock already.
allocate_rlock: Callable[[], threading.RLock] = _original("RLock")


def start_thread(target: Callable[[], None], name: str) -> None:
    """Start a thread that never keeps the process alive."""
    start = _original("start_new_thread")
    if start is _thread.start_new_thread and "gevent.monkey" not in sys.modules:
        threading.Thread(target=target, name=name, daemon=True).start()
    else:
        start(target, ())
