"""A snapshot's description: its name and options, and the calls on it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from django_latch.arguments import Seconds, within
from django_latch.conf import Settings, conf
from django_latch.core import snapshot as calls
from django_latch.core.calls import Call, StoreError
from django_latch.core.errors import unavailable
from django_latch.core.flow import Flow
from django_latch.core.names import check_name, fit_name
from django_latch.core.owner import Owner
from django_latch.core.snapshot import Wanted
from django_latch.core.templates import Template
from django_latch.core.timing import now
from django_latch.exceptions import LatchValueError
from django_latch.lease import may_block
from django_latch.namespace import qualified, tenant
from django_latch.snapshots.flow import Obtaining
from django_latch.snapshots.options import TTL, check
from django_latch.snapshots.place import Place, outage_of
from django_latch.snapshots.results import Report
from django_latch.store import drive
from django_latch.store.find import store

if TYPE_CHECKING:
    from django_latch.snapshots.decorated import Decorated

T = TypeVar("T")

#: Most places of one snapshot that are kept ready: one a tenant.
TENANTS: Final = 100


class Snapshot:
    """A value that is costly to compute and wanted by many: computed by one, shared by all.

    Immutable and shareable. Made by `snapshot(name, ...)` without a compute; a decorator, whose
    name may be a template over the call's arguments.

    Parameters:
        name: 1-255 characters of any script; see the names page.
        fresh_for: seconds (or timedelta) for which a value is taken as it is.
        keep_for: seconds for which it is kept: a stale value is answered while one caller
            computes the next. Default: five times `fresh_for`.
        wait: seconds that a caller waits for somebody else's compute when there is no value; 0:
            not at all.
        ttl: seconds after which a refresher that has died is replaced. A living one renews.
        max_hold: seconds for which one compute may take; then another caller is elected.
        on_busy: when the wait is over: ``"stale"`` (a stale value, which is never waited for, or
            LatchTimeout), ``"raise"`` (LatchTimeout), ``"pending"`` (a `Pending`), or
            ``"compute"`` (with one of `permits`, or LatchTimeout).
        on_outage: when the store gives no answer: ``"raise"`` (LatchUnavailable), ``"local"``
            (the last value of this process, at most `keep_for` old), ``"compute"``.
        on_error: when somebody else's compute failed and there is no value: ``"next"`` (wait, and
            compute in turn), ``"raise"`` (LatchComputeFailed); ``"stale"`` (a stale value, or as
            ``"raise"``).
        permits: how many in the whole fleet may compute at once with ``on_busy="compute"``,
            beside the elected one.
        refresh: where the elected caller computes: ``"inline"``, ``"thread"``, or ``"celery"``
            (decorated functions only).
        shapes: name -> function that makes a shape from the value; all are published together.
        shape: the one that is wanted; "" is the value itself.
        using: the django-redis alias. Default: the CACHE_ALIAS setting.

    Raises:
        LatchNameError, LatchValueError: names the value and the remedy; nothing was sent.
    """

    def __init__(
        self,
        name: str,
        *,
        fresh_for: Seconds = 60,
        keep_for: Seconds | None = None,
        wait: Seconds = 3,
        ttl: Seconds | None = None,
        max_hold: Seconds = 300,
        on_busy: str = "stale",
        on_outage: str = "raise",
        on_error: str = "next",
        permits: int = 1,
        refresh: str = "inline",
        shapes: Mapping[str, Callable[[Any], Any]] | None = None,
        shape: str = "",
        using: str | None = None,
    ) -> None:
        self.template = Template(name) if isinstance(name, str) and "{" in name else None
        self.name = name if self.template else check_name(name)
        self._given: dict[str, Any] = {
            "fresh_for": fresh_for,
            "keep_for": keep_for,
            "wait": wait,
            "ttl": ttl,
            "max_hold": max_hold,
            "on_busy": on_busy,
            "on_outage": on_outage,
            "on_error": on_error,
            "permits": permits,
            "refresh": refresh,
            "shapes": shapes,
            "shape": shape,
            "using": using,
        }
        self.options = check(**self._given)
        self._places: dict[tuple[Any, ...], Place] = {}

    def replace(self, **changes: Any) -> Self:
        """The same snapshot with some arguments changed; `name` is one of them."""
        return type(self)(**{"name": self.name, **self._given, **changes})

    def shaped(self, shape: str) -> Self:
        """The same snapshot, of which another shape is wanted."""
        return self.replace(shape=shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __call__(self, function: Callable[..., Any]) -> Decorated:
        """Make a function, sync or async, whose calls are answered by this snapshot."""
        from django_latch.snapshots.decorated import decorated

        return decorated(self, function)

    # The value

    def get(self, compute: Callable[[], Any]) -> Any:
        """The value: fresh, stale, or computed.

        Parameters:
            compute: makes the value, without arguments. It may return a `FreshUntil`.

        Raises:
            LatchTimeout: no value in the time given.
            LatchComputeFailed: somebody else's compute failed, and `on_error` says so.
            LatchUnavailable: the store gave no usable answer.
            LatchCorrupt: a key of ours holds something else.
            LatchDeadlock: a snapshot that is being computed here asks for itself.
            Whatever `compute` raises, unchanged.
        """
        return self.report(compute).value

    def report(self, compute: Callable[[], Any]) -> Report:
        """The same, with the value's age and what else is known."""
        place = self.place()
        if place.wanted.wait:
            may_block()
        return drive.sync(self._obtaining(place, compute, blocks=True), place.store)

    async def aget(self, compute: Callable[[], Awaitable[Any]] | Callable[[], Any]) -> Any:
        """The async twin of `get`; `compute` may be async."""
        return (await self.areport(compute)).value

    async def areport(self, compute: Callable[[], Awaitable[Any]] | Callable[[], Any]) -> Report:
        """The async twin of `report`."""
        place = self.place()
        return await drive.run(self._obtaining(place, compute), place.store.twin())

    def _obtaining(
        self, place: Place, compute: Callable[[], Any], *, blocks: bool = False
    ) -> Flow[Report]:
        return Obtaining(place, compute, self._task(compute), blocks=blocks).run()

    def _task(self, compute: Callable[[], Any]) -> dict[str, Any] | None:
        """What a Celery task is sent with."""
        if self.options.refresh != "celery":
            return None
        from django_latch.snapshots.decorated import message

        return message(compute)

    # Without computing

    def peek(self) -> Report:
        """What there is now; nothing is computed, and nobody is elected.

        Raises:
            LatchUnavailable, LatchCorrupt: see `get`.
        """
        place = self.place()
        return drive.sync(_peeking(place), place.store)

    async def apeek(self) -> Report:
        """The async twin of `peek`."""
        place = self.place()
        return await drive.run(_peeking(place), place.store.twin())

    def invalidate(self) -> None:
        """Forget the value. What is being computed now is not published any more.

        Raises:
            LatchUnavailable, LatchCorrupt: see `get`.
        """
        place = self.place()
        drive.sync(_invalidating(place), place.store)

    async def ainvalidate(self) -> None:
        """The async twin of `invalidate`."""
        place = self.place()
        await drive.run(_invalidating(place), place.store.twin())

    # What is asked for

    def place(self) -> Place:
        """Where it is kept, and what is asked for there."""
        settings = conf.load()
        at = store(self.options.using or settings.cache_alias)
        who = tenant() if settings.namespace is not None else None
        valid = (id(settings), at, os.getpid(), who)
        found = self._places.get(valid)
        if found is None or found.settings is not settings:
            if len(self._places) >= TENANTS:
                self._places = {}
            found = self._places[valid] = self._made(settings, at, who)
        return found

    def _made(self, settings: Settings, at: Any, who: str | None) -> Place:
        options = self.options
        if options.wait > settings.max_timeout:
            raise LatchValueError(
                f"wait is {options.wait:g} s, more than DJANGO_LATCH['MAX_TIMEOUT'] "
                f"({settings.max_timeout:g} s)"
            )
        label = qualified(check_name(self.name), who)
        wanted = Wanted(
            name=store_name(label, at.version),
            fresh_for=options.fresh_for,
            keep_for=options.keep_for,
            wait=options.wait,
            ttl=min(
                within("ttl", options.ttl, min(TTL, settings.max_ttl), settings.max_ttl),
                options.max_hold,
            ),
            max_hold=options.max_hold,
            permits=options.permits,
            slice=settings.slice,
            shape=options.shape,
        )
        return Place(
            label=label,
            settings=settings,
            wanted=wanted,
            options=options,
            store=at,
            outage=outage_of(at),
            owner=Owner.here(label=f"computes {label}").to_json(),
        )


def store_name(label: str, version: int) -> str:
    """What a snapshot and the lock of its refresher are called in the store."""
    return fit_name(f"snapshot:{version}:{label}")


def _answer(place: Place, call: Call[T]) -> Flow[T]:
    """Send a call that computes nothing, twice at most; an outage is noted."""
    begun = now()
    try:
        try:
            answer: T = yield call
        except StoreError as error:
            if not error.again:
                raise
            answer = yield call
    except StoreError as error:
        place.outage.note(error)
        raise unavailable(place.label, error, now() - begun) from error
    place.outage.over()
    return answer


def _peeking(place: Place) -> Flow[Report]:
    if (trouble := place.outage.check()) is not None:
        raise unavailable(place.label, trouble)
    seen = yield from _answer(place, calls.look(place.wanted.name, place.wanted.shape))
    value, seen = place.decoded(seen)
    return Report.of(place.label, seen, "peek", value)


def _invalidating(place: Place) -> Flow[None]:
    place.outage.drop(place.wanted.name)
    yield from _answer(place, calls.invalidate(place.wanted.name, place.wanted.max_hold))
