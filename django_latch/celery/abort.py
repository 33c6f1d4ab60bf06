"""``on_lost="abort"``: stop a run whose lock is lost, where that can be done safely."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from billiard.pool import soft_timeout_sighandler
from celery.exceptions import SoftTimeLimitExceeded

from django_latch.signals import lock_lost

if TYPE_CHECKING:
    from django_latch.celery.job import Job
    from django_latch.lease import Lease

logger = logging.getLogger("django_latch")


def armed(job: Job, lease: Lease | None) -> AbstractContextManager[None]:
    """Inside, the loss of `lease` raises SoftTimeLimitExceeded, if the options say so.

    Only a child of a prefork worker can be told at any moment: there a signal reaches the code
    of the task and nothing else.

    Parameters:
        job: the job, with its options.
        lease: its lease; None: it runs without.
    """
    if lease is None or job.flight.on_lost != "abort" or not _in_prefork_child():
        return _UNARMED
    return _armed(_Trigger(job.name, lease))


_UNARMED: Final = nullcontext()


@contextmanager
def _armed(trigger: _Trigger) -> Iterator[None]:
    lock_lost.connect(trigger.lost, weak=False)
    try:
        yield
    finally:
        lock_lost.disconnect(trigger.lost)
        trigger.disarm()


def _in_prefork_child() -> bool:
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGUSR1) is soft_timeout_sighandler
    )


class _Trigger:
    """Sends the signal once, and never after the run."""

    def __init__(self, name: str, lease: Lease) -> None:
        self._name = name
        self._lease = lease
        self._thread = threading.get_ident()
        self._mutex = threading.Lock()
        self._armed = True

    def lost(self, fence: int, name: str, reason: str, **_: Any) -> None:
        """Receive `lock_lost`, mostly in the heartbeat's thread."""
        if (name, fence) != (self._lease.name, self._lease.fence):
            return
        if threading.get_ident() == self._thread:
            return  # the task itself has asked, and is told
        with self._mutex:
            if not self._armed:
                return
            self._armed = False
            logger.warning("%s: aborted, its lock %s is lost: %s", self._name, name, reason)
            signal.pthread_kill(self._thread, signal.SIGUSR1)

    def disarm(self) -> None:
        """From here on nothing is sent; what was sent just now is over, for it hits in here."""
        try:
            with self._mutex:
                self._armed = False
        except SoftTimeLimitExceeded:
            with self._mutex:
                self._armed = False
            raise
