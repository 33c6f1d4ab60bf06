"""A compute elsewhere: in a thread or a task of this process, or in a Celery worker."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_latch.core import snapshot
from django_latch.core.calls import StoreError, Work
from django_latch.core.flow import Flow
from django_latch.exceptions import LatchValueError
from django_latch.heartbeat import heartbeat
from django_latch.snapshots.compute import Computing, describe
from django_latch.store import drive

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("django_latch")

#: Kept while they run: a loop alone does not.
_running: set[asyncio.Task[None]] = set()


class Background:
    """A compute that goes on elsewhere, as seen by the caller that began it."""

    def __init__(self, computing: Computing | None = None) -> None:
        self._computing = computing

    def check(self) -> None:
        """Raise, once and unchanged, what the compute has raised."""
        if self._computing is not None and self._computing.error is not None:
            error, self._computing = self._computing.error, None
            raise error


def hand_over(computing: Computing, task: dict[str, Any] | None) -> Flow[Background]:
    """Have it computed elsewhere. A message that cannot be sent is a failed compute."""
    place, lease = computing.place, computing.lease
    if place.options.refresh == "thread":
        yield Work(lambda: _start(computing))
        return Background(computing)
    send = sender()
    token = yield from lease.handing_over()
    said = {
        "name": place.wanted.name,
        "label": place.label,
        "using": place.options.using,
        "token": token,
        "fence": lease.fence,
    }
    try:
        yield Work(lambda: send({**(task or {}), **said}), True)
    except Exception as error:
        call = snapshot.fail(place.wanted.name, describe(error), token)
        try:
            yield call
        except StoreError:
            heartbeat.owe(place.store, call, lease.ttl)
        raise
    except BaseException:  # it may have been sent: then its worker finds that the token has ended
        heartbeat.owe(place.store, snapshot.fail(place.wanted.name, "", token), lease.ttl)
        raise
    return Background()


def sender() -> Callable[[dict[str, Any]], None]:
    """What sends our Celery task.

    Raises:
        LatchValueError: there is no Celery.
    """
    try:
        found: Callable[[dict[str, Any]], None] = import_module("django_latch.tasks").send_refresh
    except AttributeError:
        raise LatchValueError(
            "refresh='celery' needs Celery; install django-latch-locks[celery], or use 'thread'"
        ) from None
    return found


def _start(computing: Computing) -> None:
    """Begin to compute, in a thread or, if the compute is async, in a task."""
    if computing.is_async:
        task = asyncio.get_running_loop().create_task(_in_task(computing))
        _running.add(task)
        task.add_done_callback(_running.discard)
        return
    context = contextvars.copy_context()
    threading.Thread(
        target=lambda: context.run(_in_thread, computing),
        name="django_latch-snapshot",
        daemon=True,
    ).start()


def _in_thread(computing: Computing) -> None:
    try:
        drive.sync(computing.run("miss"), computing.place.store)
    except Exception:
        # Told to the caller that began it, if that still waits; and remembered in the store.
        logger.warning("%r could not be computed", computing.place.wanted.name, exc_info=True)
    finally:
        connections.close_all()


async def _in_task(computing: Computing) -> None:
    try:
        await drive.run(computing.run("miss"), computing.place.store.twin())
    except Exception:
        logger.warning("%r could not be computed", computing.place.wanted.name, exc_info=True)
