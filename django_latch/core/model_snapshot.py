"""The model's snapshots: a value, what failed, and who is elected to compute the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django_latch.core.model_state import Record, Snapshot, Value
from django_latch.core.model_turn import Turn
from django_latch.core.snapshot import ELECTED, Done, Seen

#: What begins the name of a wake list that is a snapshot's news.
NEWS: Final = "news:"


class Snapshots(Turn):
    """The calls on a snapshot, one method each; see the scripts of the same names."""

    @property
    def snapshot(self) -> Snapshot:
        """What is kept; nothing after its time."""
        found = self.bucket.snapshots.get(self.name)
        if found is None or found.until <= self.now:
            news = found.news if found else 0
            found = self.bucket.snapshots[self.name] = Snapshot(news=news)
        return found

    def snapshot_read(
        self, lease: int, field: str, elect: int, owner: str, token: str, unreadable: int
    ) -> Seen:
        """Read and, where the value is not fresh, elect one caller to compute it."""
        seen = self.kept(field, unreadable)
        if seen.state == "hit":
            return seen
        if not elect:
            held = [h for h in self.lock.holders if h.state == "held" and self.live(h)]
            return self.told(seen, self.idle(seen, "") if not held else "busy", held)
        before = bool(self.lock.holding)
        self.sweep(token)
        self.settle(token)
        mine = self.hold(token)
        if self.tomb(token) is not None:
            return self.told(seen, "ended", self.lock.holders)
        if mine is None and self.lock.holders:
            return self.told(seen, "busy", self.lock.holders)
        role = "elected"
        if mine is None:
            role = self.idle(seen, "takeover" if before else "elected")
            if role not in ELECTED:
                return self.told(seen, role, [])
            mine = Record(
                token=token,
                state="held",
                fence=self.stamp(),
                exp=self.now + lease,
                lease=lease,
                limit=1,
                since=self.now,
                owner=owner,
            )
            self.event(2, "acquired", mine.fence, owner, waited=0)
            self.take(mine)
        return self.told(seen, role, [mine])

    def kept(self, field: str, unreadable: int) -> Seen:
        """The value as the reader sees it, and the failures beside it."""
        kept, value = self.snapshot, self.snapshot.value
        raw = value.shapes.get(field) if value else None
        seen = Seen("miss", 0, 0, 0, 0, "", 0, 0, "0-0", kept.failures, 0, kept.error, None)
        seen = replace(seen, retry_in=max(kept.not_before - self.now, 0))
        if value is None or raw is None or value.fence == unreadable or self.now >= value.kept:
            return seen
        fresh = value.made <= self.now < value.fresh
        return replace(
            seen,
            state="hit" if fresh else "stale",
            fence=value.fence,
            age=max(self.now - value.made, 0),
            left=value.fresh - self.now,
            took=value.took,
            value=raw,
        )

    def idle(self, seen: Seen, otherwise: str) -> str:
        """The role of a caller while nobody computes."""
        return "failed" if seen.retry_in > 0 else otherwise

    def told(self, seen: Seen, role: str, holders: list[Record]) -> Seen:
        """The answer to a caller with this role."""
        fence, left = (holders[0].fence, holders[0].exp - self.now) if holders else (0, 0)
        since = "0-0" if role in ELECTED else str(self.snapshot.news)
        return replace(seen, role=role, holder=fence, holder_left=left, since=since)

    def snapshot_publish(
        self,
        fresh: int,
        keep: int,
        took: int,
        deadline: int,
        token: str,
        fence: int,
        *shapes: str | bytes,
    ) -> Done:
        """Publish all shapes at once, if the fence is the newest."""
        last = self.snapshot.floor
        if last == fence:
            return Done("published", "", fence)
        self.sweep(token)
        mine, tomb, why = self.hold(token), self.tomb(token), ""
        if last > fence:
            why = "superseded"
        elif token and (mine is None or mine.fence != fence):
            why = tomb.reason if tomb else "superseded" if mine else "missing"
        if not why:
            ends = min(self.now + fresh, deadline or self.now + fresh)
            values = dict(zip(shapes[::2], shapes[1::2], strict=True))
            self.bucket.snapshots[self.name] = Snapshot(
                value=Value(fence, self.now, ends, self.now + keep, took, values),  # type: ignore[arg-type]
                floor=fence,
                listed=self.now + keep,
                until=self.now + keep,
                news=self.snapshot.news,
            )
        self.dismiss(mine, "released", fence)
        self.tell_all()
        self.settle(token)
        return Done("refused", why, last) if why else Done("published", "", fence)

    def snapshot_fail(self, first: int, most: int, error: str, token: str, fence: int) -> Done:
        """A compute ended without a value."""
        self.sweep(token)
        mine, tomb, kept, pause = self.hold(token), self.tomb(token), self.snapshot, 0
        known = self.dismissed(mine, fence)
        if error and kept.floor <= fence and (known or not token):
            kept.failures, kept.error = kept.failures + 1, error
            pause = min(first * 2 ** min(kept.failures - 1, 30), most)
            kept.not_before = self.now + pause
            kept.until = kept.listed = max(kept.until, self.now + pause + most)
        self.dismiss(mine, "released" if error else "abandoned", fence)
        if not known and not error and token and tomb is None and mine is None:
            self.bury(token, "abandoned", fence, 0, 0, lasts=True)
        if known or pause:
            self.tell_all()
        self.settle(token)
        if known or not token:
            return Done("freed", "", pause)
        reason = tomb.reason if tomb else mine.state if mine else "missing"
        return Done("refused", reason, 0)

    def snapshot_invalidate(self, longest: int) -> Done:
        """Forget the value; what is being computed cannot be published."""
        self.sweep("")
        for holder in list(self.lock.holders):
            self.dismiss(holder, "revoked", holder.fence)
        fence = self.stamp()
        until = self.now + longest + self.terms.grace
        news = self.snapshot.news
        self.bucket.snapshots[self.name] = Snapshot(floor=fence, until=until, news=news)
        self.tell_all()
        self.settle("")
        return Done("invalidated", "", fence)

    def dismissed(self, record: Record | None, fence: int) -> bool:
        """Whether this is the hold of the election; fence 0: whichever it got."""
        return record is not None and record.state == "held" and fence in (0, record.fence)

    def dismiss(self, record: Record | None, reason: str, fence: int) -> None:
        """The elected caller needs its lock no more."""
        if record is None or not self.dismissed(record, fence):
            return
        tomb = self.finish(record, reason, lasts=reason != "released")
        self.event(2, reason, record.fence, record.owner, held=tomb.held, note="")

    def tell_all(self) -> None:
        """Wake everybody who waits for this snapshot."""
        self.snapshot.news += 1
        self.woken.append(NEWS + self.name)
