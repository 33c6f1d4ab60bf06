"""The sync client."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from django_latch.client import steps
from django_latch.client.state import Held, logger
from django_latch.client.wanted import Options, headers, wanted
from django_latch.exceptions import LatchError

T = TypeVar("T")


class RemoteLease(Held):
    """A lease; renewed by a thread of its own until it is released or lost."""

    _stop: threading.Event

    def start(self, client: LatchClient, renew: bool) -> None:
        """Begin to renew it."""
        self._client, self._stop = client, threading.Event()
        if renew:
            args = (weakref.ref(self), self._stop, self.ttl / 3)
            threading.Thread(target=_renew, args=args, name="latch-renewal", daemon=True).start()

    def renew_once(self) -> float:
        """Renew in the background. Returns seconds until the next time; 0 for never."""
        try:
            return self._heard(self._client.run(self._renewing()))
        except LatchError as error:
            return self._heard(error)

    def renew(self) -> None:
        """Reset the lease to its full `ttl`.

        Raises:
            LatchLost, LatchNotHeld: it is lost.
            LatchUnavailable: no answer; the lease goes on until its deadline.
        """
        self.ensure_held()
        try:
            self._heard(self._client.run(self._renewing()))
        except LatchError as error:
            self._heard(error)
            raise
        self.ensure_held()

    def release(self) -> None:
        """Give the lock back. Quiet if that has happened already.

        Raises:
            LatchNotHeld: it was lost before; whoever holds it now is unharmed.
            LatchUnavailable: no answer; the lock ends by itself, after its ttl.
        """
        self._stop.set()
        if self._ended_at is None:
            self._end()
            body = {"token": self.token}
            request = steps.Request("POST", steps.path(self.key, "/release"), body)
            self._client.run(steps.asking(request))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Release; raise LatchLost if the body ran on without the lock."""
        reason = self.lost
        try:
            if reason is None:
                self.release()
        except LatchError as trouble:
            if error is None:
                raise
            logger.warning("%r was not released: %s", self.key, trouble)
        finally:
            self._stop.set()
            self._end()
        if reason and error is None:
            self.ensure_held()


def _renew(lease: weakref.ref[RemoteLease], stop: threading.Event, pause: float) -> None:
    """Until the lease ends, or nobody knows it any more."""
    while pause and not stop.wait(pause):
        held = lease()
        pause = held.renew_once() if held else 0.0
        del held


class LatchClient:
    """A client of one server; a context manager. May be shared between threads.

    Parameters:
        url: where the API is mounted, without ``/v1``.
        token: the API token.
        patience: seconds for which one request may go without an answer, beside its waiting.
        transport: for tests, as in httpx.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = 5.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._patience = patience
        self._http = httpx.Client(base_url=url, headers=headers(token), transport=transport)

    @contextmanager
    def lock(self, key: str, **options: Any) -> Generator[RemoteLease]:
        """Hold a lock for the body of a `with`; see `acquire`."""
        with self.acquire(key, **options) as lease:
            yield lease

    def acquire(self, key: str, **options: Any) -> RemoteLease:
        """Acquire a lock.

        Parameters:
            key: the lock's name.
            **options: see `Options`.

        Raises:
            LatchBusy, LatchTimeout, LatchQueueFull, LatchDeadlock: not granted.
            LatchUnavailable: no usable answer.
            LatchError: refused; `reason` is the server's code.
        """
        asked = Options(**options)
        body = wanted(asked)
        lease = RemoteLease(key, body, self.run(steps.acquiring(key, body)))
        lease.start(self, asked.renew)
        return lease

    def inspect(self, key: str) -> Mapping[str, Any]:
        """What is known of a lock; never a token."""
        return self.run(steps.asking(steps.Request("GET", steps.path(key))))

    def force(self, key: str, reason: str) -> Mapping[str, Any]:
        """Free a lock from whoever holds it; needs the right, and is audited."""
        body = {"force": True, "reason": reason}
        return self.run(steps.asking(steps.Request("POST", steps.path(key, "/release"), body)))

    def run(self, flow: steps.Flow[T]) -> T:
        """Run a flow to its end; whatever interrupts a step is the flow's to settle."""
        try:
            step = next(flow)
            while True:
                try:
                    reply = self._do(step)
                except BaseException as error:  # noqa: BLE001  the flow raises it again
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _do(self, step: steps.Request | steps.Pause) -> steps.Reply | None:
        if isinstance(step, steps.Pause):
            time.sleep(step.seconds)
            return None
        timeout = httpx.Timeout(self._patience, read=self._patience + step.patience)
        try:
            answer = self._http.request(step.method, step.path, json=step.json, timeout=timeout)
        except httpx.TransportError as error:
            raise steps.Unreachable(type(error).__name__) from error
        return reply_of(answer)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def reply_of(answer: httpx.Response) -> steps.Reply:
    """The answer; whatever is no JSON object has no members."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    return steps.Reply(answer.status_code, body if isinstance(body, dict) else {})
