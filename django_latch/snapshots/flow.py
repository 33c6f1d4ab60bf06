"""One call for a value: read, wait, compute, or what the policies say. Without input and output."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from django_latch import signals
from django_latch.core import snapshot
from django_latch.core.calls import Glance, StoreError, Watch, Work
from django_latch.core.errors import unavailable
from django_latch.core.flow import Flow, Grant
from django_latch.core.snapshot import ELECTED, NOTHING, Seen
from django_latch.core.timing import deadline, now
from django_latch.core.tokens import new_token
from django_latch.exceptions import LatchComputeFailed, LatchDeadlock
from django_latch.heartbeat import heartbeat
from django_latch.snapshots import fallback
from django_latch.snapshots.background import Background, hand_over
from django_latch.snapshots.compute import Computing, path_to
from django_latch.snapshots.refresh import Refresh
from django_latch.snapshots.results import Report
from django_latch.snapshots.turns import Key, Turn, turns

if TYPE_CHECKING:
    from django_latch.snapshots.place import Place

logger = logging.getLogger("django_latch")

#: Seconds after the end of a lease, or of a pause, at which the next caller asks.
AFTER: Final = 0.002

#: Seconds kept at least for the answer to the last look, of waits that are long enough.
LEAST: Final = 0.005


class Obtaining:
    """One call.

    Parameters:
        place: the snapshot.
        compute: makes the value; in async code it may return an awaitable.
        task: what a Celery task would be sent with, where one can.
        blocks: the caller is a thread, which may wait for another one.
    """

    def __init__(
        self,
        place: Place,
        compute: Callable[[], Any],
        task: dict[str, Any] | None = None,
        *,
        blocks: bool = False,
    ) -> None:
        self.place = place
        self.wanted = place.wanted
        self.compute = compute
        self.task = task
        self.blocks = blocks
        self.turn: Turn | None = None  # our own
        self.begun = now()
        self.until = self.begun + self.wanted.wait if self.wanted.wait else None
        self.asked = self.begun  # since when the store has been asked
        self.glance = Glance(self.wanted.name, self.wanted.field, self.until)
        self.news: Seen | None = None  # what was seen at the end of a wait, if that was fresh
        self.waited_for = False  # somebody else's compute
        self.unreadable = 0  # fence of a value that cannot be read
        self.last: Seen | None = None
        self.round_trip = 0.0
        self.again = True  # what has no answer may be sent once more
        self.token = ""
        self.at_large = False  # an election of this token may be under way, with no lease to it
        self.sent = 0.0
        self.deaf: StoreError | None = None  # the news could not be heard
        self.background: Background | None = None

    @property
    def waited(self) -> float:
        """Seconds since the call began."""
        return now() - self.begun

    def run(self) -> Flow[Report]:
        """The value, in a report.

        Raises:
            LatchTimeout, LatchUnavailable, LatchComputeFailed, LatchDeadlock: as the policies say.
            LatchCorrupt: a key of ours holds something else.
        """
        trouble = self.place.outage.check()
        if trouble is None:
            try:
                report = yield from self._obtained()
            except StoreError as error:
                self.place.outage.note(error)
                self._give_up()
                trouble = error
            except BaseException:
                self._give_up()
                raise
            finally:
                self._end_turn()
        if trouble is not None:
            outage = unavailable(self.place.label, trouble, self.waited)
            report = yield from fallback.without_store(self, outage, trouble)
        self.tell(report.outcome, report.age, report.waited)
        return report

    def tell(self, outcome: str, age: float = 0.0, waited: float = 0.0) -> None:
        """Send the signal about this call."""
        if signals.snapshot_served.receivers:
            signals.send(
                signals.snapshot_served,
                name=self.place.label,
                outcome=outcome,
                age=age,
                waited=waited,
            )

    def _obtained(self) -> Flow[Report]:
        seen = yield from self._looked()
        while True:
            if self.background is not None:  # before another election: the lock may be free by now
                self.background.check()
            seen = seen or (yield from self._read())
            if seen is None:
                self._end_turn()
                if self.last is None:
                    self.place.outage.unheard(self.asked)
                return (yield from fallback.out_of_time(self, self.last))
            self.last = seen
            if self.turn is not None:
                self.turn.seen = seen
            value, seen = self._decoded(seen)
            if seen.state == "hit":
                outcome = "wait" if self.waited_for else "hit"
                return Report.of(self.place.label, seen, outcome, value, self.waited)
            report = yield from self._not_fresh(seen, value)
            if report is not None:
                return report
            seen, self.news = self.news, None

    def _glanced(self) -> Flow[Seen | None]:
        """The value by plain commands if it is fresh: no token, no script, and no lock."""
        begun = now()
        try:
            seen: Seen | None = yield self.glance
        except StoreError as error:
            if error.reason == "spent":
                return None
            if not error.again:
                raise
            self.again = False  # what follows is the second sending already
            return None
        self.place.outage.over()
        self.round_trip = now() - begun
        return seen

    def _looked(self) -> Flow[Seen | None]:
        """A glance. Where there is no value, one thread asks on; the others wait for its turn."""
        while True:
            seen = yield from self._glanced()
            if seen is not NOTHING:
                return seen
            # Nobody waits for what waits for them; see `_check_circle`.
            if not self.blocks or self.until is None or path_to(self.place):
                return None
            self.turn = Turn(self.until)
            turn = turns.begin(self._key, self.turn)
            left = self.until - self._reserve() - now()
            if turn is self.turn:
                return None
            self.turn = None
            if left <= 0:
                return None
            self.waited_for = True
            yield Work(partial(turn.wait, left))
            # Nothing was asked meanwhile: that is no silence of the store.
            self.asked, self.last = now(), turn.seen or self.last
            if (trouble := self.place.outage.check()) is not None:
                raise trouble

    def _end_turn(self) -> None:
        """Let other threads ask, or see what has come of it."""
        if self.turn is not None:
            turns.end(self._key, self.turn)
            self.turn = None

    @property
    def _key(self) -> Key:
        return (*self.place.key, self.wanted.shape)

    def _reserve(self) -> float:
        """Seconds of the wait that are kept for an answer at its end."""
        return min(max(2 * self.round_trip, LEAST), self.wanted.wait / 4)

    def _not_fresh(self, seen: Seen, value: Any) -> Flow[Report | None]:
        """What there is to do about it; None: read again."""
        if seen.role in ELECTED:
            waited = self.waited
            computed = yield from self._elected(seen)
            if computed is not None:
                return replace(computed, waited=waited)
        if seen.state == "stale":
            return Report.of(self.place.label, seen, "stale", value, self.waited)
        if self.background is not None:
            self.background.check()
        if seen.role in (*ELECTED, "ended", "unread"):  # the token has ended, or a hit is none
            return None
        if seen.role == "failed" and self.place.options.on_error != "next":
            raise self._failed(seen)
        self._check_circle(seen)
        self.waited_for = True
        if self.until is None or not (yield from self._watched(seen, self.until)):
            self._end_turn()
            return (yield from fallback.out_of_time(self, seen))
        return None

    def _read(self) -> Flow[Seen | None]:
        """One look, sent once more where no answer came; None when the time is spent."""
        if self.until is not None and now() >= self.until:
            return None
        self.token = new_token()
        call = snapshot.read(
            self.wanted, self.place.owner, self.token, unreadable=self.unreadable, until=self.until
        )
        unanswered = False
        self.at_large, self.sent = True, now()
        try:
            try:
                seen: Seen = yield call
            except StoreError as error:
                unanswered = error.unanswered
                if not (error.again and self.again):
                    raise
                self.sent = now()
                seen = yield call
        except StoreError as error:
            if unanswered or error.unanswered:
                self._give_up()
            self.at_large = False
            if error.reason == "spent":
                return None
            raise
        self.round_trip, self.again = now() - self.sent, True
        self.place.outage.over()
        if seen.role not in ELECTED:
            if unanswered:  # the first sending may still come to something
                self._give_up()
            self.at_large = False
        return seen

    def _give_up(self) -> None:
        """Nobody is to be elected by what is under way: the reply was lost, or nobody hears it."""
        if not self.at_large:
            return
        self.at_large = False
        call = snapshot.fail(self.wanted.name, "", self.token)
        heartbeat.owe(self.place.store, call, max(self.wanted.ttl, 60.0))

    def _decoded(self, seen: Seen) -> tuple[Any, Seen]:
        """The value; bytes that cannot be read are none."""
        value, read = self.place.decoded(seen)
        if read is not seen:
            self.unreadable = seen.fence
            return None, replace(read, role=seen.role or "unread")
        if self.place.options.on_outage == "local":
            self.place.outage.keep_seen(self.wanted.name, self.wanted.shape, seen)
        return value, seen

    def _elected(self, seen: Seen) -> Flow[Report | None]:
        """Compute here; or have it computed, and see what there is meanwhile."""
        self._end_turn()  # others must hear of a value that comes from elsewhere
        grant = Grant(self.token, seen.holder, deadline(self.sent, seen.holder_left), self.waited)
        lease = Refresh(self.place.store, self.wanted, grant)
        self.at_large = False
        computing = Computing(self.place, self.compute, lease)
        outcome = "miss"
        if seen.role == "takeover":
            outcome = "takeover"
            logger.info("%r: its refresher is gone, and this process computes", self.wanted.name)
        try:
            if self.place.options.refresh == "inline":
                return (yield from computing.run(outcome))
            self.background = yield from hand_over(computing, self.task)
        except BaseException:
            if lease.held_here:  # interrupted before it was begun
                lease.free_soon()
            raise
        return None

    def _failed(self, seen: Seen) -> LatchComputeFailed:
        self.tell("failed", waited=self.waited)
        return LatchComputeFailed(
            f"{self.place.label!r} could not be computed: {seen.error}; tried again in "
            f"{seen.retry_in / 1000:.1f} s at the earliest",
            name=self.place.label,
            waited=round(self.waited, 3),
            failures=seen.failures,
            retry_after=math.ceil(seen.retry_in / 1000) or 1,
        )

    def _check_circle(self, seen: Seen) -> None:
        """Whoever waits here for what waits for them would wait in vain."""
        if path := path_to(self.place):
            path = [*path, self.place.label]
            steps = " asks for ".join(map(repr, path))
            raise LatchDeadlock(
                f"a snapshot cannot wait for itself: {steps}",
                name=self.place.label,
                cycle=[{"holds": one, "waits": other} for one, other in pairwise(path)],
                reason="deadlock",
            )

    def _watched(self, seen: Seen, until: float) -> Flow[bool]:
        """Wait for news; False where no time is left for that and an answer behind it."""
        time = now()
        end = min(time + self.wanted.slice, until - self._reserve())
        if seen.role == "busy":
            end = min(end, time + seen.holder_left / 1000 + AFTER)
        elif seen.role == "failed":
            end = min(end, time + seen.retry_in / 1000 + AFTER)
        if end <= time:
            return False
        try:
            news = yield Watch(self.glance, seen.since, end)
            self.news = None if news is NOTHING else news
        except StoreError as error:
            if self.deaf is not None or not error.again:
                raise
            self.deaf = error  # the read that follows tells whether it is an outage
        return True
