"""The lock in code: a `Latch` describes it, each acquisition is a `Lease`."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django_latch import signals
from django_latch.conf import Settings, conf
from django_latch.core import flow, replies, verbs
from django_latch.core.calls import StoreError
from django_latch.core.errors import JobFinished
from django_latch.core.flow import Grant
from django_latch.core.timing import FOREVER, deadline, seconds
from django_latch.core.tokens import check_token, new_token
from django_latch.current import AsCurrent, current_lease
from django_latch.decorated import locked
from django_latch.description import Description
from django_latch.exceptions import (
    LatchCorrupt,
    LatchNotAcquired,
    LatchNotHeld,
    LatchValueError,
)
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.lease import Lease, may_block
from django_latch.many import ManyLatch
from django_latch.store import drive
from django_latch.store.find import store as store_of

if TYPE_CHECKING:
    from django_latch.inventory import LockInfo
    from django_latch.store.base import AsyncStore, Store

__all__ = ["AsCurrent", "JobFinished", "Latch", "Lease", "current_lease", "latch"]

logger = logging.getLogger("django_latch")

P = ParamSpec("P")
R = TypeVar("R")


class Latch(Description):
    """A lock's description. Immutable and shareable: each entry is a lease of its own.

    A context manager, a decorator (then the name may be a template over the call's arguments),
    or called step by step::

        with latch("invoice:42", timeout=0) as lease: ...

        @latch("report:{year}", on_conflict="skip")
        def build(year): ...

    Parameters:
        name: 1-255 characters of any script; see the names page.
        ttl: seconds (or timedelta) the lock outlives its holder's last sign of life. Default:
            the TTL setting.
        timeout: seconds to wait in the queue; 0 is one try. Default: the TIMEOUT setting.
        limit: how many may hold it at once.
        on_conflict: ``"raise"``; on decorators also ``"skip"``: return `skip_value` instead.
        heartbeat: renew every third of `ttl` while held.
        max_hold: renew for at most so many seconds; then the lease is lost, `expired`.
        max_waiters: how many may wait. Default: the MAX_WAITERS setting.
        owner: a label for lists and errors; the process's own facts are added.
        meta: more facts, plain JSON values, at most 4 kB and 16 levels.
        release_on: ``"exit"``, or ``"commit"``: a block that ends inside an open transaction
            releases when that has been committed or rolled back.
        using: the django-redis alias. Default: the CACHE_ALIAS setting.

    Raises:
        LatchNameError, LatchValueError: names the value and the remedy; nothing was sent.
    """

    @classmethod
    def many(cls, *names: str, **options: Any) -> ManyLatch:
        """Several locks, all or nothing: ``with Latch.many("a", "b") as leases: ...``.

        Free ones are taken in one round trip. Otherwise they are taken one after the other, in
        an order that is the same for everybody, so that no two callers wait for each other.

        Parameters:
            names: at most 100 different ones.
            **options: as for one latch; `timeout` is for all of them together.
        """
        return ManyLatch([cls(name, **options) for name in names])

    # Step by step

    def acquire(
        self,
        *,
        token: str | None = None,
        job: str | None = None,
        min_hold: float = 0,
        ask: verbs.Ask | None = None,
    ) -> Lease:
        """Take the lock and return the lease.

        Parameters:
            token: a secret of one's own, fresh for each acquisition: 32-128 characters of
                ``[A-Za-z0-9_-]``. Sent again after an error it gets the same lease.
            job: refuse if this job is remembered as finished; see `Lease.release`.
            min_hold: seconds the permit stays taken at least, also after a release.
            ask: another lock, as `ask_for` says it.

        Raises:
            LatchBusy: it is held, and the timeout is 0.
            LatchTimeout, LatchQueueFull: not granted in time, or too many wait.
            JobFinished: the job has finished.
            LatchUnavailable: the store gave no usable answer. Nothing is held.
        """
        settings = conf.load()
        if ask is None:
            ask = self._ask(settings)
        if ask.timeout:
            may_block()
        store = self._store(settings)
        return drive.sync(self._acquiring(ask, store, store, token, job, min_hold), store)

    async def aacquire(self, *, token: str | None = None) -> Lease:
        """The async twin of `acquire`."""
        settings = conf.load()
        store = self._store(settings)
        twin = store.twin()
        ask = self._ask(settings)
        return await drive.run(self._acquiring(ask, store, twin, token), twin)

    def _acquiring(
        self,
        ask: verbs.Ask,
        store: Store,
        asking: Store | AsyncStore,
        token: str | None = None,
        job: str | None = None,
        min_hold: float = 0,
    ) -> flow.Flow[Lease]:
        if min_hold:
            least = seconds(min_hold, "min_hold", least=0, most=FOREVER)
            ask = replace(ask, min_hold=least)
        caller = verbs.Caller(
            token=new_token() if token is None else check_token(token),
            own=token is not None,
            job=job or "",
            wake=asking.wake_id() if ask.timeout else "",
        )
        owe = functools.partial(heartbeats.owe, store, seconds=max(ask.grace, ask.ttl))
        lease = self._lease(store, ask)
        try:
            grant = yield from flow.acquire(ask, caller, owe)
        except LatchNotAcquired as refusal:
            signals.contended(ask.name, refusal)
            raise
        try:
            lease.begin(grant)
            signals.acquired(ask.name, grant, ask.ttl)
            if grant.stale:
                yield from settle(grant.stale)
        except BaseException:
            if lease.begun:
                lease.release_soon()
            else:
                owe(verbs.end(ask.name, grant.token, "abandoned", grant.fence, resent=True))
            raise
        return lease

    def try_acquire(self) -> Lease | None:
        """The lease, or None where the lock was not acquired.

        Raises:
            LatchUnavailable, LatchTimeout: no answer, or none in the time given. That is no None:
                perhaps nobody holds the lock.
        """
        try:
            return self.acquire()
        except LatchNotAcquired as refusal:
            if refusal.unanswered:
                raise
            return None

    async def atry_acquire(self) -> Lease | None:
        """The async twin of `try_acquire`."""
        try:
            return await self.aacquire()
        except LatchNotAcquired as refusal:
            if refusal.unanswered:
                raise
            return None

    def adopt(
        self,
        token: str,
        *,
        into: str | None = None,
        remember: float = 0,
        min_hold: float = 0,
        ask: verbs.Ask | None = None,
    ) -> Lease:
        """Take over a lease that another process has detached.

        Parameters:
            token: what `Lease.detach` returned there. It serves once.
            into: a token of one's own for the lease, as for `acquire`.
            remember: seconds for which the store says of `token` that it was adopted, at least:
                for as long as a copy of the message that brought it may still come.
            min_hold, ask: as for `acquire`.

        Raises:
            LatchNotHeld: it holds nothing (any more); `reason` says why.
            LatchUnavailable: no answer.
        """
        store = self._store(conf.load())
        return drive.sync(self._adopting(store, token, into, remember, min_hold, ask), store)

    async def aadopt(self, token: str) -> Lease:
        """The async twin of `adopt`."""
        store = self._store(conf.load())
        return await drive.run(self._adopting(store, token), store.twin())

    def _adopting(
        self,
        store: Store,
        token: str,
        into: str | None = None,
        remember: float = 0,
        min_hold: float = 0,
        ask: verbs.Ask | None = None,
    ) -> flow.Flow[Lease]:
        ask = ask or self._ask(conf.load())
        own = new_token() if into is None else check_token(into)
        old = check_token(token)
        call = verbs.adopt(ask.name, old, own, ask.ttl, ask.owner, remember, min_hold)
        reply, sent = yield from flow.twice(call)
        if isinstance(reply, replies.Ended):
            raise LatchNotHeld(
                f"the token does not hold {ask.name!r}: {reply.reason}",
                name=ask.name,
                reason=reply.reason,
            )
        grant = Grant(own, reply.fence, deadline(sent, reply.left), 0.0)
        lease = self._lease(store, ask)
        lease.begin(grant)
        return lease

    def inspect(self) -> LockInfo | None:
        """What the store knows of this lock: its holders and waiters; None where it is free."""
        from django_latch import inventory

        return inventory.get(self._name(conf.load()), using=self.using)

    # with

    def __enter__(self) -> Lease:
        self._check_with()
        return self._entered(self.acquire())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._left().__exit__(kind, error, where)

    async def __aenter__(self) -> Lease:
        self._check_with()
        return self._entered(await self.aacquire())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self._left().__aexit__(kind, error, where)

    def _check_with(self) -> None:
        if self.on_conflict == "skip":
            raise LatchValueError(
                "on_conflict='skip' is for decorators: a `with` cannot skip its body; "
                "use try_acquire()"
            )

    def _entered(self, lease: Lease) -> Lease:
        scope = AsCurrent(lease)
        scope.__enter__()
        self._entries.add((lease, scope))
        return lease

    def _left(self) -> Lease:
        lease: Lease
        lease, scope = self._entries.pop()
        scope.__exit__(None, None, None)
        return lease

    # @

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run each call of `function`, sync or async, under the lock."""
        return locked(self, function)

    def _store(self, settings: Settings) -> Store:
        return store_of(self.using or settings.cache_alias)

    def _lease(self, store: Store, ask: verbs.Ask) -> Lease:
        lease = Lease(store, ask.name, ttl=ask.ttl, renews=self.heartbeat, max_hold=self.max_hold)
        lease.record = ask.owner
        lease.at_commit = self.release_on == "commit"
        return lease


latch = Latch


def settle(names: Iterable[str]) -> flow.Flow[None]:
    """Settle other locks whose leases have passed; what fails is left to another acquire."""
    for name in names:
        try:
            yield verbs.trim(name)
        except StoreError:
            return
        except LatchCorrupt as error:  # of that lock: this one is granted
            logger.error("%s", error)
