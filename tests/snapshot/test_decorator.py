"""Functions whose calls are answered by a snapshot."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import iscoroutinefunction

from django_latch import LatchNameError, LatchValueError, Pending, snapshot
from django_latch.snapshots import Snapshot


def test_a_function_with_a_template() -> None:
    runs: list[tuple[str, int]] = []

    @snapshot("health:{region}", fresh_for=60)
    def health(region: str, depth: int = 1) -> str:
        """How it is."""
        runs.append((region, depth))
        return f"{region} is fine"

    assert health("north") == health(region="north") == "north is fine"
    assert health("south") == "south is fine"
    assert runs == [("north", 1), ("south", 1)]
    assert (health.__name__, health.__doc__) == ("health", "How it is.")
    assert health.peek("north").value == "north is fine"
    assert health.report("north").age >= 0
    health.invalidate("north")
    assert health.peek("north").state == "miss"
    assert health.peek("south").state == "hit"
    assert snapshot("health:south", lambda: "never") == "south is fine"
    assert isinstance(health.snapshot, Snapshot)


def test_an_async_function() -> None:
    runs: list[str] = []

    @snapshot("health:{region}", fresh_for=60)
    async def health(region: str) -> str:
        runs.append(region)
        await asyncio.sleep(0)
        return f"{region} is fine"

    async def main() -> None:
        assert await health("north") == await health("north") == "north is fine"
        assert (await health.report("north")).outcome == "hit"
        assert (await health.peek("north")).value == "north is fine"
        await health.invalidate("north")
        assert (await health.peek("north")).state == "miss"

    assert iscoroutinefunction(health)
    asyncio.run(main())
    assert runs == ["north"]


def test_a_method() -> None:
    class Site:
        pk = 7

        @snapshot("site:{self.pk}", fresh_for=60, shapes={"text": str})
        def sweep(self) -> int:
            return 42

    assert Site().sweep() == 42
    assert Site.sweep.peek(Site()).value == 42
    assert Site().sweep.report().outcome == "hit"
    assert Site().sweep.shaped("text")() == "42"
    Site().sweep.invalidate()
    assert Site().sweep.peek().state == "miss"
    assert "Site.sweep, a <Snapshot 'site:{self.pk}'>" in repr(Site.sweep)


def test_shapes_of_a_function() -> None:
    @snapshot("health", shapes={"compact": lambda value: value["status"]})
    def health() -> dict[str, str]:
        return {"status": "ok", "detail": "all of it"}

    assert health.shaped("compact")() == "ok"
    assert health() == {"status": "ok", "detail": "all of it"}
    assert health.shaped("compact").peek().value == "ok"
    with pytest.raises(LatchValueError, match="'tiny' is not one of `shapes`, which has 'compact'"):
        health.shaped("tiny")


def test_bad_templates_and_functions() -> None:
    with pytest.raises(LatchNameError, match="'place' is not a parameter"):
        snapshot("health:{place}")(lambda region: region)

    def generate() -> object:
        yield 1

    with pytest.raises(LatchValueError, match="is a generator"):
        snapshot("health")(generate)
    with pytest.raises(LatchValueError, match="decorates functions"):
        snapshot("health")(7)
    with pytest.raises(LatchNameError, match="f-string without its f"):
        snapshot("health:{region}", lambda: 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_busy": "wait"}, "on_busy must be one of 'stale', 'raise', 'pending', 'compute', no"),
        ({"on_outage": "ignore"}, "on_outage must be one of 'raise', 'local', 'compute', not 'ig"),
        ({"on_error": None}, "on_error must be one of 'next', 'raise', 'stale', not None"),
        ({"refresh": "later"}, "refresh must be one of 'inline', 'thread', 'celery', not 'later"),
        ({"fresh_for": 0}, "fresh_for must be between 0.01 and"),
        ({"fresh_for": "60"}, "fresh_for must be seconds"),
        ({"fresh_for": 60, "keep_for": 30}, "keep_for is 30 s, less than fresh_for"),
        ({"wait": -1}, "wait must be between 0 and"),
        ({"wait": 10**6}, "MAX_TIMEOUT"),
        ({"ttl": 0}, "ttl must be between"),
        ({"ttl": 10**6}, "MAX_TTL"),
        ({"permits": 0}, "permits must be a whole number from 1"),
        ({"shape": "compact"}, "shape 'compact' is not one of `shapes`, which has none"),
        ({"shapes": {"": str}}, "shapes must be a dict of names and functions"),
        ({"shapes": {"a": 7}}, "shapes must be a dict of names and functions"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_options_name_the_value_and_the_remedy(options: dict[str, object], said: str) -> None:
    with pytest.raises(LatchValueError) as refused:
        snapshot("health", lambda: 1, **options)
    assert said in str(refused.value)


def test_defaults() -> None:
    options = snapshot("health", fresh_for=10).options
    assert (options.fresh_for, options.keep_for, options.wait) == (10, 50, 3)
    assert (options.on_busy, options.on_outage, options.on_error) == ("stale", "raise", "next")
    assert (options.permits, options.refresh, options.max_hold) == (1, "inline", 300)


def test_a_pending_value_is_false_and_says_so() -> None:
    assert not Pending("health", 2)
    assert repr(Pending("health", 2)) == "Pending(name='health', retry_after=2)"
