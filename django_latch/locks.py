"""The lock in code: a `Latch` describes it, each acquisition is a `Lease`."""

from __future__ import annotations

import asyncio
import functools
import inspect as inspection
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from django.utils.asyncio import async_unsafe

from django_latch import signals
from django_latch.arguments import PERMITS, WAITERS, Seconds, check_owner, count, duration, within
from django_latch.conf import FOREVER, Settings, conf
from django_latch.core import flow, replies, verbs
from django_latch.core.calls import StoreError
from django_latch.core.canonical import bind
from django_latch.core.errors import JobFinished
from django_latch.core.flow import Grant
from django_latch.core.names import check_name
from django_latch.core.owner import Owner
from django_latch.core.templates import Template
from django_latch.core.timing import SHORTEST, deadline, seconds
from django_latch.core.tokens import check_token, new_token
from django_latch.current import as_current, current_lease
from django_latch.exceptions import LatchNotAcquired, LatchNotHeld, LatchValueError
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.lease import Lease
from django_latch.namespace import qualified, tenant
from django_latch.store import drive

if TYPE_CHECKING:
    from django_latch.inventory import LockInfo
    from django_latch.store.redis import RedisStore

__all__ = ["JobFinished", "Latch", "Lease", "as_current", "current_lease", "latch"]

P = ParamSpec("P")
R = TypeVar("R")


class Latch:
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
        meta: more facts, plain JSON values, at most 4 kB.
        using: the django-redis alias. Default: the CACHE_ALIAS setting.

    Raises:
        LatchNameError, LatchValueError: names the value and the remedy; nothing was sent.
    """

    def __init__(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
        limit: int = 1,
        on_conflict: Literal["raise", "skip"] = "raise",
        skip_value: Any = None,
        heartbeat: bool = True,
        max_hold: Seconds | None = None,
        max_waiters: int | None = None,
        owner: str | Owner | None = None,
        meta: Mapping[str, Any] | None = None,
        using: str | None = None,
    ) -> None:
        # A name with fields is for a decorator; anything else fails in check_name.
        self._template = Template(name) if isinstance(name, str) and "{" in name else None
        self.name = name if self._template else check_name(name)
        self.ttl = duration("ttl", ttl, SHORTEST)
        self.timeout = duration("timeout", timeout, 0)
        self.limit = count("limit", limit, 1, PERMITS)
        if on_conflict not in ("raise", "skip"):
            raise LatchValueError(f"on_conflict must be 'raise' or 'skip', not {on_conflict!r:.80}")
        self.on_conflict = on_conflict
        self.skip_value = skip_value
        self.heartbeat = bool(heartbeat)
        self.max_hold = duration("max_hold", max_hold, SHORTEST)
        self.max_waiters = (
            None if max_waiters is None else count("max_waiters", max_waiters, 0, WAITERS)
        )
        check_owner(owner, meta)
        self.owner = owner
        self.meta = meta
        self.using = using
        self._exact = False
        self._asked: tuple[tuple[Settings, int], verbs.Ask] | None = None
        self._entries: list[tuple[tuple[int, int], Lease, Any]] = []

    @classmethod
    def exact(cls, name: str, **options: Any) -> Self:
        """A latch on a name as the store has it: the NAMESPACE setting is not applied (again)."""
        made = cls(name, **options)
        made._exact = True
        return made

    def replace(self, **changes: Any) -> Self:
        """The same latch with some arguments changed; `name` is one of them."""
        names = inspection.signature(Latch).parameters
        made = type(self)(**{**{name: getattr(self, name) for name in names}, **changes})
        made._exact = self._exact
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    # Step by step

    def acquire(
        self, *, token: str | None = None, job: str | None = None, min_hold: float = 0
    ) -> Lease:
        """Take the lock and return the lease.

        Parameters:
            token: a secret of one's own, fresh for each acquisition: 32-128 characters of
                ``[A-Za-z0-9_-]``. Sent again after an error it gets the same lease.
            job: refuse if this job is remembered as finished; see `Lease.release`.
            min_hold: seconds the permit stays taken at least, also after a release.

        Raises:
            LatchBusy: it is held, and the timeout is 0.
            LatchTimeout, LatchQueueFull: not granted in time, or too many wait.
            JobFinished: the job has finished.
            LatchUnavailable: the store gave no usable answer. Nothing is held.
        """
        settings = conf.load()
        ask = self._ask(settings)
        if min_hold:
            least = seconds(min_hold, "min_hold", least=0, most=FOREVER)
            ask = replace(ask, min_hold=least)
        caller = verbs.Caller(new_token() if token is None else check_token(token), job or "")
        if ask.timeout:
            _may_block()
            caller = replace(caller, wake=new_token()[:16])
        store = self._store()
        owe = functools.partial(heartbeats.owe, store, seconds=max(settings.grace, ask.ttl))
        try:
            grant = drive.sync(flow.acquire(ask, caller, owe), store)
        except LatchNotAcquired as refusal:
            signals.send(
                signals.lock_contended,
                name=ask.name,
                reason=refusal.reason,
                holder=refusal.holder,
                waited=refusal.waited or 0.0,
            )
            raise
        lease = self._lease(store, ask.name, grant, ask.ttl)
        lease.tell(signals.lock_acquired, waited=grant.waited, ttl=ask.ttl)
        for name in grant.stale:
            _settle(store, name)
        return lease

    def try_acquire(self) -> Lease | None:
        """The lease, or None where the lock was not acquired. An outage raises all the same."""
        try:
            return self.acquire()
        except LatchNotAcquired:
            return None

    def adopt(self, token: str) -> Lease:
        """Take over a lease that another process has detached.

        Parameters:
            token: what `Lease.detach` returned there. It serves once.

        Raises:
            LatchNotHeld: it holds nothing (any more); `reason` says why.
            LatchUnavailable: no answer.
        """
        settings = conf.load()
        ask = self._ask(settings)
        store, own = self._store(), new_token()
        call = verbs.adopt(ask.name, token, own, ask.ttl, ask.owner)
        reply, sent = drive.sync(flow.renew(call), store)
        if isinstance(reply, replies.Ended):
            raise LatchNotHeld(
                f"the token does not hold {ask.name!r}: {reply.reason}",
                name=ask.name,
                reason=reply.reason,
            )
        grant = Grant(own, reply.fence, deadline(sent, reply.left), 0.0)
        return self._lease(store, ask.name, grant, ask.ttl)

    def inspect(self) -> LockInfo | None:
        """What the store knows of this lock: its holders and waiters; None where it is free."""
        from django_latch import inventory

        return inventory.get(self._name(), using=self.using)

    # with

    def __enter__(self) -> Lease:
        if self.on_conflict == "skip":
            raise LatchValueError(
                "on_conflict='skip' is for decorators: a `with` cannot skip its body; "
                "use try_acquire()"
            )
        lease = self.acquire()
        scope = as_current(lease)
        scope.__enter__()
        self._entries.append((_place(), lease, scope))
        return lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        entry = self._own_entry()
        self._entries.remove(entry)
        _, lease, scope = entry
        scope.__exit__(None, None, None)
        lease.__exit__(kind, error, where)

    def _own_entry(self) -> tuple[tuple[int, int], Lease, Any]:
        """The latest entry of this thread and task; or the only one there is."""
        here = _place()
        own = [entry for entry in self._entries if entry[0] == here]
        if own:
            return own[-1]
        if len(self._entries) == 1:
            return self._entries[0]
        raise RuntimeError(
            f"{self!r} was entered elsewhere, by several threads or tasks; "
            "use acquire() and release()"
        )

    # @

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run each call of `function` under the lock."""
        if inspection.iscoroutinefunction(function) or inspection.isasyncgenfunction(function):
            raise LatchValueError(
                f"{function!r:.120} is async: django_latch locks sync functions so far"
            )
        if inspection.isgeneratorfunction(function):
            raise LatchValueError(
                f"{function!r:.120} is a generator: it would run after its lock was released"
            )
        signature = inspection.signature(function)
        if self._template:
            self._template.check(signature, getattr(function, "__qualname__", repr(function)))

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                lease = self._for(signature, args, kwargs).acquire()
            except LatchNotAcquired:
                if self.on_conflict == "skip":
                    return self.skip_value  # type: ignore[no-any-return]
                raise
            with lease, as_current(lease):
                return function(*args, **kwargs)

        return locked

    def _for(self, signature: inspection.Signature, args: Any, kwargs: Any) -> Latch:
        if self._template is None:
            return self
        return self.replace(name=self._template.render(bind(signature, args, kwargs)))

    # What is asked for

    def _name(self) -> str:
        name = check_name(self.name) if self._template else self.name
        return name if self._exact else qualified(name, tenant())

    def _ask(self, settings: Settings) -> verbs.Ask:
        """What is asked for; made once for as long as nothing that it depends on changes."""
        valid = (settings, heartbeats.generation)
        if self._asked is not None and self._asked[0] == valid:
            return self._asked[1]
        ttl = within("ttl", self.ttl, settings.ttl, settings.max_ttl)
        ask = verbs.Ask(
            name=self._name(),
            ttl=ttl if self.max_hold is None else min(ttl, self.max_hold),
            owner=self._record().to_json() if self.owner or self.meta else _here(os.getpid()),
            timeout=within("timeout", self.timeout, settings.timeout, settings.max_timeout),
            limit=self.limit,
            slice=settings.slice,
            claim=settings.claim,
            max_waiters=settings.max_waiters if self.max_waiters is None else self.max_waiters,
            max_timeout=settings.max_timeout,
        )
        if self._exact or settings.namespace is None:
            self._asked = valid, ask
        return ask

    def _record(self) -> Owner:
        """Who acquires: made at each acquisition, for a latch may be older than its process."""
        if isinstance(self.owner, Owner):
            return self.owner
        return Owner.here(label=self.owner or "", meta=self.meta)

    def _store(self) -> RedisStore:
        from django_latch.store.connections import store

        return store(self.using)

    def _lease(self, store: RedisStore, name: str, grant: Grant, ttl: float) -> Lease:
        return Lease(
            store,
            name,
            grant,
            ttl=ttl,
            owner=self._record() if self.owner or self.meta else None,
            renews=self.heartbeat,
            max_hold=self.max_hold,
        )


latch = Latch


@functools.cache
def _here(pid: int) -> str:
    """The owner record of a process that says nothing more."""
    return Owner.here().to_json()


def _place() -> tuple[int, int]:
    """This thread and, in an event loop, this task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task) if task else 0


@async_unsafe("django_latch waits in the thread; pass timeout=0, or call it through sync_to_async")
def _may_block() -> None:
    """Raise SynchronousOnlyOperation inside a running event loop, as Django's ORM does."""


def _settle(store: RedisStore, name: str) -> None:
    """Write down the end of a lease whose time has passed; another acquire will, if this fails."""
    with suppress(StoreError):
        store.call(verbs.trim(name))
