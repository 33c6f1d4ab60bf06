"""What the sync and the async client do, without input and output.

Each flow is a generator: it yields a `Request` or a `Pause` and is sent the `Reply`, or thrown
`Unreachable`. The token is made here, before the first send, so whatever had no answer is
simply sent again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

from django_latch.client.answers import error_of
from django_latch.core.timing import DRIFT, now
from django_latch.exceptions import LatchError, LatchNameError, LatchNotHeld, LatchUnavailable

T = TypeVar("T")

#: Seconds between two sendings where the server does not say how long to wait.
PAUSE: Final = 0.2

#: How often a request is sent that has no time of its own.
TRIES: Final = 3


class Unreachable(Exception):
    """There was no answer; the request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `patience` is how many seconds the server itself may take."""

    method: str
    path: str
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `body` is empty where it was no JSON object."""

    status: int
    body: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Granted:
    """A lease as it was told; `deadline` on the clock of core.timing.now."""

    fence: int
    deadline: float
    waited: float


Flow = Generator[Request | Pause, Any, T]


def path(key: str, more: str = "") -> str:
    """Where a key lives.

    Raises:
        LatchNameError: a key of dots only, which no path can carry.
    """
    if key in (".", ".."):
        raise LatchNameError(f"{key!r} is no key: a path of dots is resolved before it is sent")
    return f"/v1/latch/{quote(key, safe='')}{more}"


def acquiring(key: str, wanted: Mapping[str, Any]) -> Flow[Granted]:
    """Acquire: `wanted` is the body, with the token and the whole timeout.

    Raises:
        LatchError: see `error_of`. Nothing is held, as far as the server could be told.
    """
    begun = now()
    until = begun + wanted["timeout"]
    try:
        return (yield from _until_granted(key, wanted, begun, until))
    except LatchUnavailable:
        raise  # telling the server would need an answer too; its own time-out does it
    except GeneratorExit:
        raise
    except BaseException as error:
        if not isinstance(error, LatchError):
            yield from _leave(key, wanted["token"])
        raise


def _until_granted(
    key: str, wanted: Mapping[str, Any], begun: float, until: float
) -> Flow[Granted]:
    tries = 0
    while True:
        tries += 1
        sent = now()
        left = max(until - sent, 0.0)
        try:
            reply = yield Request("POST", path(key), {**wanted, "timeout": left}, left)
        except Unreachable as error:
            trouble: LatchError = LatchUnavailable(
                f"no answer about {key!r}: {error}", name=key, reason="connection"
            )
            pause = PAUSE
        else:
            if reply.status == 200 and "fence" in reply.body:
                return Granted(reply.body["fence"], deadline(sent, wanted["ttl"]), now() - begun)
            trouble = error_of(reply.status, reply.body)
            pause = float(reply.body.get("retry_after", PAUSE))
            if reply.body.get("resumable"):
                if now() < until:
                    continue
                yield from _leave(key, wanted["token"])
        if not isinstance(trouble, LatchUnavailable):
            raise trouble
        if now() + pause >= until and tries >= TRIES:
            raise trouble
        yield Pause(pause)


def _leave(key: str, token: str) -> Flow[None]:
    """Say that nobody waits any more. The server notices by itself, only later."""
    try:
        yield Request("POST", path(key, "/release"), {"token": token})
    except Unreachable:
        return


def deadline(sent: float, ttl: float) -> float:
    """Until when a lease may be believed, counted from before the request."""
    return sent + ttl * (1 - DRIFT)


def renewing(key: str, token: str, ttl: float, fence: int) -> Flow[float]:
    """Renew once. Returns the new deadline.

    Raises:
        LatchNotHeld: it is lost; also where the token has another lease, with another fence.
        LatchUnavailable: no answer.
    """
    sent = now()
    body = {"token": token, "ttl": ttl, "timeout": 0, "renew": True}
    try:
        reply = yield Request("POST", path(key), body)
    except Unreachable as error:
        raise LatchUnavailable(
            f"no answer about {key!r}: {error}", name=key, reason="connection"
        ) from error
    if reply.status != 200 or "fence" not in reply.body:
        raise error_of(reply.status, reply.body)
    if reply.body["fence"] != fence:
        raise LatchNotHeld(
            f"the lease on {key!r} was made anew, under another fence",
            name=key,
            reason="superseded",
        )
    return deadline(sent, ttl)


def asking(request: Request) -> Flow[Mapping[str, Any]]:
    """Send a request that may be sent again, a few times.

    Raises:
        LatchError: see `error_of`.
    """
    for more in reversed(range(TRIES)):
        try:
            reply = yield request
        except Unreachable as error:
            trouble: LatchError = LatchUnavailable(f"no answer: {error}", reason="connection")
        else:
            if reply.status == 200 and "key" in reply.body:
                return reply.body  # type: ignore[no-any-return]
            trouble = error_of(reply.status, reply.body)
        if not isinstance(trouble, LatchUnavailable) or not more:
            raise trouble
        yield Pause(PAUSE)
    raise AssertionError("unreachable")
