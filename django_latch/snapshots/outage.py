"""While the store does not answer: a short back-off, and the last values of this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from django_latch.core.calls import StoreError
from django_latch.core.timing import now

if TYPE_CHECKING:
    from django_latch.core.snapshot import Seen

#: Seconds after an outage in which the store is not asked, so that not every caller pays the
#: time-out; then one asks, and the others go on without it meanwhile.
PAUSE: Final = 1.0

#: Most values kept by a process for outages; the oldest go first.
VALUES: Final = 1000

#: A full memory refuses elections, but values can be read: no reason not to ask.
ANSWERED: Final = ("spent", "oom")


class Outage:
    """What a process knows of the outages of one store.

    Parameters:
        patience: the store's, in seconds.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._silence = 0.0  # for how long callers have waited since there was an answer
        self._silent = 0.0  # until when, on the clock of `now`, that is counted
        self._until = 0.0
        self._error: StoreError | None = None
        self._mutex = threading.Lock()
        # (name, shape) -> value, and since when and until when it is fresh on the clock of `now`
        self._values: OrderedDict[tuple[str, str], tuple[bytes, float, float]] = OrderedDict()

    def check(self) -> StoreError | None:
        """Why the store is not asked just now; None: the caller may ask it."""
        if self._error is None:
            return None
        with self._mutex:
            if self._error is None:
                return None
            if now() < self._until:
                return StoreError(
                    f"{self._error}; not asked again for {self._until - now():.1f} s",
                    reason=self._error.reason,
                    unanswered=False,
                    again=False,
                )
            self._until = now() + PAUSE  # this caller asks; the others wait for what it hears
            return None

    def note(self, error: StoreError) -> None:
        """The store gave no usable answer."""
        if error.reason in ANSWERED:
            return
        with self._mutex:
            self._error, self._until = error, now() + PAUSE

    def unheard(self, since: float) -> None:
        """A caller's time was spent without any answer.

        That alone is no outage. But where no time is long enough for a time-out, a store that
        hangs would never be one; so the times of all callers are counted together.

        Parameters:
            since: when the caller began, on the clock of `now`.

        Raises:
            StoreError: nobody got an answer for as long as a time-out, or since an outage.
        """
        with self._mutex:
            time = now()
            self._silence += max(time - max(since, self._silent), 0.0)
            self._silent = time
            if self._error is None and self._silence < self._patience:
                return
            silence, self._silence = self._silence, 0.0
        raise StoreError(
            f"no answer in {silence:.1f} s", reason="timeout", unanswered=True, again=False
        )

    def over(self) -> None:
        """It has answered."""
        if self._error is not None or self._silence:
            with self._mutex:
                self._error, self._silence = None, 0.0

    # Values

    def keep(self, name: str, shape: str, value: bytes, fresh_for: float, age: float = 0.0) -> None:
        """Keep a value for the next outage."""
        time = now()
        with self._mutex:
            self._values[name, shape] = value, time - age, time + fresh_for
            self._values.move_to_end((name, shape))
            while len(self._values) > VALUES:
                self._values.popitem(last=False)

    def keep_seen(self, name: str, shape: str, seen: Seen) -> None:
        """Keep what was read."""
        if seen.value is not None:
            self.keep(name, shape, seen.value, seen.left / 1000, seen.age / 1000)

    def drop(self, name: str) -> None:
        """Forget the values of a snapshot that was invalidated."""
        with self._mutex:
            for at in [at for at in self._values if at[0] == name]:
                del self._values[at]

    def last(self, name: str, shape: str, most: float) -> tuple[bytes, float, float] | None:
        """The last value, its age in seconds and for how many more it is fresh.

        None if it is older than `most`.
        """
        with self._mutex:
            found = self._values.get((name, shape))
        time = now()
        if found is None or time - found[1] > most:
            return None
        value, since, until = found
        return value, time - since, until - time
