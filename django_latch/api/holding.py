"""Acquire and renew."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime, timedelta
from typing import Any

from django_latch import signals
from django_latch.api import bodies, refusals
from django_latch.api.accounts import Waits, too_many
from django_latch.api.asking import ask_of, send
from django_latch.api.endpoint import Asked, needs
from django_latch.api.problems import Problem, invalid, not_holder, problem_of
from django_latch.conf import Settings, conf
from django_latch.core import flow, replies, verbs
from django_latch.core.calls import Call
from django_latch.core.errors import moment
from django_latch.core.flow import Grant
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchNotAcquired, LatchTimeout
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.locks import settle
from django_latch.store import drive
from django_latch.store.connections import store


@needs("write")
async def acquire(asked: Asked) -> dict[str, Any]:
    """Renew the lease of the token that was sent, or acquire the lock."""
    settings = conf.load()
    known = bodies.acquire_fields(settings.max_ttl, settings.max_timeout)
    body = bodies.fields(asked.request, known)
    if body.get("renew") and "token" not in body:
        raise invalid("invalid_request", {"/token": "is needed to renew"})
    making = _Acquiring(asked, body, settings)
    if "token" in body:
        renewed = await making.renewed()
        if renewed is not None:
            return renewed
    return await making.granted()


class _Acquiring:
    """One request, and the account's count of leases beside it."""

    def __init__(self, asked: Asked, body: dict[str, Any], settings: Settings) -> None:
        self.key, self.account, self.settings = asked.key, asked.account, settings
        self.given = "token" in body
        self.token: str = body.get("token") or new_token()
        self.stored = asked.account.stored(asked.key, self.token)
        self.renew_only: bool = body.get("renew", False)
        self.ask = ask_of(asked.account, asked.key, body, settings)
        self.capped = body.get("timeout", settings.timeout) > settings.http.max_wait
        self.store = store()
        self.twin = self.store.twin()
        self.room: int | None = None

    def _counted(self, most: int) -> Call[int]:
        life = self.ask.timeout + self.ask.ttl
        return self.account.holds(self.key, self.stored, most, life)

    async def renewed(self) -> dict[str, Any] | None:
        """The answer where the token has a lease; None where it may get its first one."""
        sent = now()
        renewal = verbs.renew(self.key, self.stored, None, self.ask.ttl)
        reply, self.room = await asyncio.gather(
            send(renewal, self.twin), send(self._counted(self.settings.http.max_locks), self.twin)
        )
        if isinstance(reply, replies.Renewed):
            end = deadline(sent, reply.left)
            return self._answer(Grant(self.stored, reply.fence, end, 0.0), reply.left / 1000, True)
        first = reply.reason == "missing"
        if first and not self.renew_only:
            return None
        await self._uncount()
        if first:
            raise not_holder(self.key, "never_held")
        raise await refusals.refusal(self.twin, self.key, reply)

    async def granted(self) -> dict[str, Any]:
        """Acquire; a refusal leaves no trace but a place that may be taken up again."""
        most = self.settings.http.max_locks
        if self.room is None:
            self.room = await send(self._counted(most), self.twin)
        if self.room < 0:
            raise too_many("too_many_locks", "locks", most)
        try:
            grant = await self._asked_for()
        except LatchNotAcquired as error:
            raise await self._refused(error) from error
        except Problem:
            await self._uncount()
            raise
        except BaseException:
            # Nothing may be awaited here: the client has gone, or the store has. One that made
            # its token may be back with it already, so what it has got stays.
            if not self.given:
                gone = verbs.end(self.key, self.stored, "abandoned", resent=True)
                heartbeats.owe(self.store, gone, self.settings.grace)
                heartbeats.owe(self.store, self._counted(0), self.ask.ttl)
            raise
        signals.acquired(self.key, grant, self.ask.ttl)
        return self._answer(grant, self.ask.ttl, False)

    async def _asked_for(self) -> Grant:
        caller = verbs.Caller(
            token=self.stored,
            wake=self.twin.wake_id() if self.ask.timeout else "",
            own=True,
            keep=self.capped,
            returns=self.given,
        )
        owe = functools.partial(
            heartbeats.owe, self.store, seconds=max(self.settings.grace, self.ask.ttl)
        )
        with Waits(self.twin, self.account, self.settings.http.max_waits) as waits:
            grant = await drive.run(flow.acquire(self.ask, caller, owe), waits)
        if grant.stale:
            await drive.run(settle(grant.stale), self.twin)
        return grant

    async def _refused(self, error: LatchNotAcquired) -> Problem:
        signals.contended(self.key, error)
        problem = problem_of(error)
        if isinstance(error, LatchTimeout):
            resumable = self.capped and error.position is not None
            problem.facts["resumable"] = resumable
            if resumable:
                problem.facts |= {
                    "token": self.token,
                    "retry_after": 0,
                    "advice": "Send the same request again with this token: your place is kept.",
                }
                return await refusals.enrich(problem, self.key)
        await self._uncount()
        return await refusals.enrich(problem, self.key)

    async def _uncount(self) -> None:
        await send(self._counted(0), self.twin)

    def _answer(self, grant: Grant, ttl: float, renewed: bool) -> dict[str, Any]:
        left = max(grant.deadline - now(), 0.0)
        return {
            "key": self.key,
            "token": self.token,
            "fence": grant.fence,
            "ttl": ttl,
            # A fence is the moment of its grant in microseconds, on the store's clock.
            "acquired_at": moment(grant.fence // 1000).isoformat(),
            "expires_at": (datetime.now(UTC) + timedelta(seconds=left)).isoformat(),
            "waited": round(grant.waited, 3),
            "renewed": renewed,
        }
