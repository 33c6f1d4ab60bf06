"""A lock's description: what a latch is made with, checked, and what it asks the store for."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

from django_latch.arguments import PERMITS, WAITERS, Seconds, check_owner, count, duration, within
from django_latch.conf import Settings, conf
from django_latch.core import verbs
from django_latch.core.names import check_name
from django_latch.core.owner import Owner
from django_latch.core.templates import Template
from django_latch.core.timing import SHORTEST
from django_latch.current import Entries, place_name
from django_latch.exceptions import LatchValueError
from django_latch.heartbeat import heartbeat as heartbeats
from django_latch.namespace import qualified, tenant


class Description:
    """What a latch is made with. Immutable; see `Latch` for the parameters."""

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
        release_on: Literal["exit", "commit"] = "exit",
        using: str | None = None,
    ) -> None:
        # A name with fields is for a decorator; anything else fails in check_name.
        self.template = Template(name) if isinstance(name, str) and "{" in name else None
        self.name = name if self.template else check_name(name)
        self.ttl = duration("ttl", ttl, SHORTEST)
        self.timeout = duration("timeout", timeout, 0)
        self.limit = count("limit", limit, 1, PERMITS)
        if on_conflict not in ("raise", "skip"):
            raise LatchValueError(f"on_conflict must be 'raise' or 'skip', not {on_conflict!r:.80}")
        self.on_conflict = on_conflict
        self.skip_value = skip_value
        if not isinstance(heartbeat, bool):
            raise LatchValueError(f"heartbeat must be True or False, not {heartbeat!r:.80}")
        self.heartbeat = heartbeat
        self.max_hold = duration("max_hold", max_hold, SHORTEST)
        self.max_waiters = (
            None if max_waiters is None else count("max_waiters", max_waiters, 0, WAITERS)
        )
        check_owner(owner, meta)
        self.owner = owner
        self.meta = meta
        if release_on not in ("exit", "commit"):
            raise LatchValueError(f"release_on must be 'exit' or 'commit', not {release_on!r:.80}")
        self.release_on = release_on
        self.using = using
        self._exact = False
        self._entries: Entries[tuple[Any, Any]] = Entries()
        self._asked: tuple[tuple[Settings, int, str], verbs.Ask] | None = None

    @classmethod
    def exact(cls, name: str, **options: Any) -> Self:
        """A latch on a name as the store has it: the NAMESPACE setting is not applied (again)."""
        made = cls(name, **options)
        made._exact = True
        return made

    def replace(self, **changes: Any) -> Self:
        """The same latch with some arguments changed; `name` is one of them."""
        names = inspect.signature(type(self)).parameters
        made = type(self)(**{**{name: getattr(self, name) for name in names}, **changes})
        made._exact = self._exact
        return made

    def ask_for(self, name: str, record: str) -> verbs.Ask:
        """What to ask for where another lock is wanted on the same terms, not checked again.

        Parameters:
            name: as the store has it.
            record: who asks, as `Owner.to_json` writes it, in place of `owner` and `meta`.
        """
        ask, own = self._ask(conf.load()), object.__new__(verbs.Ask)
        if ask.agent:
            record = replace(Owner.from_json(record), agent=ask.agent).to_json()
        own.__dict__.update(ask.__dict__, name=check_name(name), owner=record, args=ask.args)
        return own

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    # What is asked for

    def _name(self, settings: Settings) -> str:
        name = check_name(self.name) if self.template else self.name
        apart = not self._exact and settings.namespace is not None
        return qualified(name, tenant()) if apart else name

    def _ask(self, settings: Settings) -> verbs.Ask:
        """What is asked for; made once for as long as nothing that it depends on changes."""
        agent = place_name() if settings.deadlocks else ""
        valid = (settings, heartbeats.generation, agent)
        if self._asked is not None and self._asked[0] == valid:
            return self._asked[1]
        ttl = within("ttl", self.ttl, settings.ttl, settings.max_ttl)
        ask = verbs.Ask(
            name=self._name(settings),
            ttl=ttl if self.max_hold is None else min(ttl, self.max_hold),
            owner=self._record(agent),
            timeout=within("timeout", self.timeout, settings.timeout, settings.max_timeout),
            limit=self.limit,
            slice=settings.slice,
            claim=settings.claim,
            max_waiters=settings.max_waiters if self.max_waiters is None else self.max_waiters,
            max_timeout=settings.max_timeout,
            live=settings.live,
            grace=settings.grace,
            agent=agent,
        )
        if self._exact or settings.namespace is None:
            self._asked = valid, ask
        return ask

    def _record(self, agent: str) -> str:
        """Who acquires: made at each acquisition, for a latch may be older than its process."""
        if isinstance(self.owner, Owner):
            return replace(self.owner, agent=agent).to_json()
        if not (self.owner or self.meta or agent):
            return _here(os.getpid())
        return Owner.here(label=self.owner or "", meta=self.meta, agent=agent).to_json()


@functools.cache
def _here(pid: int) -> str:
    """The owner record of a process that says nothing more."""
    return Owner.here().to_json()
