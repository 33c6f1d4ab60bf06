"""The seam: what the engine asks of a store, whatever is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

from django_latch.core.calls import Call, Glance, Park, Watch
from django_latch.core.snapshot import Seen

T = TypeVar("T")

#: The EVENTS setting, as the scripts have it.
EVENT_LEVELS: Final = {"none": 0, "problems": 1, "all": 2}


class Codec(Protocol):
    """Writes values as bytes and reads them; both may raise anything."""

    def encode(self, value: Any) -> bytes:
        """The bytes of a value."""

    def decode(self, raw: bytes) -> Any:
        """The value of such bytes."""


class AsyncStore(Protocol):
    """A lock store for the tasks of one event loop; see Store."""

    def wake_id(self) -> str:
        """The wake list for an acquisition."""

    async def call(self, call: Call[T]) -> T:
        """Run a script."""

    async def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait for a wake message or the end of the slice, then run the script; see Park."""


class AsyncSnapshots(AsyncStore, Protocol):
    """What flows of snapshots need besides."""

    async def glance(self, glance: Glance) -> Seen | None:
        """Read a snapshot's value, if it is fresh; see `core.snapshot.glanced`."""

    async def watch(self, watch: Watch) -> Seen | None:
        """Wait for news of a snapshot, and glance at it; None when the slice ends before."""


class Store(Protocol):
    """A lock store. Calls raise StoreError, or LatchCorrupt for a key of a wrong type."""

    def wake_id(self) -> str:
        """The wake list for an acquisition."""

    def call(self, call: Call[T]) -> T:
        """Run a script."""

    def park(self, park: Park[T]) -> tuple[T, int]:
        """Wait for a wake message or the end of the slice, then run the script; see Park."""

    def glance(self, glance: Glance) -> Seen | None:
        """Read a snapshot's value, if it is fresh; see `core.snapshot.glanced`."""

    def watch(self, watch: Watch) -> Seen | None:
        """Wait for news of a snapshot, and glance at it; None when the slice ends before."""

    def pipeline(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run several in one round trip; an entry that failed is its error."""

    def batch(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """The same on a connection of its own: this is how the heartbeat renews."""

    def twin(self) -> AsyncSnapshots:
        """The async store of the running event loop."""

    @property
    def codec(self) -> Codec:
        """How values of snapshots are written."""

    @property
    def version(self) -> int:
        """The VERSION of the cache alias: values of another one are other values."""

    @property
    def patience(self) -> float:
        """Seconds that a call without a time of its own waits for an answer."""

    def repair(self, *, dry_run: bool) -> list[tuple[str, str]]:
        """Put in order what no call can use: the lock or key, and what was wrong with it."""

    def recorded(self) -> set[str]:
        """The names of the locks of which there are records, listed or not."""
