"""``on_conflict="rerun"``: one more run after the present one, with the latest arguments.

The first message that finds the lock held carries the lock's next run: it is sent again and again
until its turn comes. Later calls leave their arguments with it and are done. Where the carrier is
lost, `revive` finds that it is overdue.
"""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kombu import serialization as kombu_serialization
from kombu.exceptions import EncodeError

from django_latch.celery import told
from django_latch.core import flow, replies, verbs
from django_latch.exceptions import LatchValueError
from django_latch.store import drive
from django_latch.store.connections import store

if TYPE_CHECKING:
    from django_latch.celery.job import Job
    from django_latch.celery.options import SingleFlight

#: Half of it is typed.
serialization: Final[Any] = kombu_serialization

#: Longest time in seconds between two looks of a carrier whether its turn has come.
LONGEST: Final = 5.0

#: How a message finds its queue.
ROUTE: Final = ("queue", "exchange", "routing_key", "priority")

#: What is kept of a call's options: that, and how its arguments are shown.
KEPT: Final = (*ROUTE, "argsrepr", "kwargsrepr")


def claim(key: str, job: str, payload: str, live: float, *, again: bool = False) -> replies.Slot:
    """Ask for one more run of a lock.

    Parameters:
        key: the lock.
        job: identity of the job whose message would carry it.
        payload: see `packed`.
        live: seconds within which the carrier will show itself.
        again: it is the carrier already, and shows itself.

    Returns:
        who carries it; by the word of it, `carrier`: this job.

    Raises:
        LatchUnavailable: no answer.
    """
    call = verbs.slot(key, "raise" if again else "claim", job, live, payload)
    answer: replies.Slot = drive.sync(flow.twice(call), store())[0]
    return answer


def live_seconds(flight: SingleFlight, countdown: float) -> float:
    """How long a carrier may be out of sight: as long as a dead run may block the key."""
    return countdown + flight.lease_seconds


def countdown(waits: int) -> float:
    """Seconds until a carrier looks again: soon at first."""
    return random.uniform(0.5, 1) * min(0.5 * 2.0**waits, LONGEST)  # noqa: S311


def packed(task: Any, args: Any, kwargs: Any, made: int, options: Mapping[str, Any]) -> str:
    """A call as text for the lock's record: whose it is, when it was made, arguments and options.

    Parameters:
        task: the task.
        args, kwargs: as they go into a message.
        made: when the call was made, in microseconds.
        options: of the call; some are kept.

    Raises:
        LatchValueError: the arguments do not pass the task's serializer.
    """
    serializer = options.get("serializer") or task.serializer or task.app.conf.task_serializer
    try:
        kind, encoding, data = serialization.dumps((tuple(args), dict(kwargs)), serializer)
    except EncodeError as error:
        raise LatchValueError(
            f"{task.name}: on_conflict='rerun' keeps the latest arguments in the lock store, and "
            f"{serializer!r} cannot write these: {error}"
        ) from error
    binary = isinstance(data, bytes)
    facts = {
        "type": kind,
        "encoding": encoding,
        "data": base64.b64encode(data).decode() if binary else data,
        "binary": binary,
        "route": {k: _plain(options[k]) for k in KEPT if options.get(k) is not None},
    }
    return f"{task.name}\n{made}\n{json.dumps(facts)}"


def unpacked(text: str, accept: Any) -> tuple[str, Any, dict[str, Any], dict[str, Any]]:
    """What `packed` has put together: task, arguments, keyword arguments, options.

    Parameters:
        text: a payload.
        accept: content types that may be read, as Celery's ``accept_content``.
    """
    name, _, rest = text.split("\n", 2)
    facts = json.loads(rest)
    data = base64.b64decode(facts["data"]) if facts["binary"] else facts["data"]
    args, kwargs = serialization.loads(
        data, facts["type"], facts["encoding"], accept=serialization.prepare_accept_content(accept)
    )
    return name, args, kwargs, facts["route"]


def packed_run(job: Job) -> str:
    """The call of a job that is about to run, as `packed` has it."""
    request = job.request
    info = request.delivery_info or {}
    route = {name: info.get(name) for name in ROUTE}
    if route["exchange"] == "" and route["routing_key"]:  # the exchange that leads to a queue
        route = {"queue": route["routing_key"], "priority": route["priority"]}
    made = job.carried.made if job.carried else 0
    made = made or time.time_ns() // 1000  # sent by a program that knows nothing of us
    options = {**route, **told.shown(request)}
    return packed(job.task, request.args or (), request.kwargs or {}, made, options)


def arguments(job: Job, payload: str | None) -> tuple[Any, dict[str, Any]]:
    """What a job is to run with: its own arguments, or those of the latest call.

    Parameters:
        job: the job that has the lock.
        payload: what came with the grant.
    """
    if payload is None or job.task is None:
        return job.args, job.kwargs
    _, args, kwargs, _ = unpacked(payload, job.task.app.conf.accept_content)
    # A retry must go on with the latest arguments too.
    job.request.args, job.request.kwargs = args, kwargs
    return args, kwargs


def _plain(value: Any) -> Any:
    """A queue or exchange by its name."""
    return getattr(value, "name", value)
