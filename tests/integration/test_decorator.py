"""Functions that run under a lock."""

from __future__ import annotations

import inspect
import threading

import pytest
import redis

from django_latch import LatchBusy, LatchNameError, LatchValueError, current_lease, latch
from tests.integration import audit
from tests.integration.calls import grant


def test_each_call_runs_under_the_lock_of_its_arguments(raw: redis.Redis) -> None:
    @latch("report:{year}", timeout=0)
    def build(year: int, draft: bool = False) -> tuple[int, bool]:
        assert audit.locks(raw) == {f"report:{year}"}
        lease = current_lease()
        assert lease is not None
        assert lease.name == f"report:{year}"
        return year, draft

    assert build(2024) == (2024, False)
    audit.assert_free(raw, "report:2024")
    raw.flushdb()
    assert build(year=2025, draft=True) == (2025, True)
    assert current_lease() is None


def test_calls_with_other_arguments_do_not_meet() -> None:
    @latch("report:{year}", timeout=0)
    def build(year: int, then: object = None) -> object:
        return then() if callable(then) else year

    assert build(1, lambda: build(2)) == 2
    with pytest.raises(LatchBusy, match="report:1"):
        build(1, lambda: build(1))


def test_it_meets_the_lock_of_that_name() -> None:
    @latch("sync:{account}", timeout=0)
    def sync(account: object) -> str:
        return "ran"

    with latch("sync:42", timeout=0):
        for same in (42, "42"):
            with pytest.raises(LatchBusy):
                sync(same)
    assert sync(42) == "ran"


def test_a_call_may_be_skipped() -> None:
    @latch("job", timeout=0, on_conflict="skip", skip_value="skipped")
    def run() -> str:
        return "ran"

    assert run() == "ran"
    with latch("job", timeout=0):
        assert run() == "skipped"


def test_a_refusal_that_the_function_itself_raises_is_no_skip() -> None:
    @latch("outer", timeout=0, on_conflict="skip", skip_value="skipped")
    def run() -> None:
        with latch("inner", timeout=0):
            pass

    grant(name="inner")
    with pytest.raises(LatchBusy, match="inner"):
        run()


def test_the_function_keeps_its_face() -> None:
    @latch("job")
    def run(a: int, *, b: str = "x") -> float:
        """What it does."""
        return 0.5

    assert run.__name__ == "run"
    assert run.__doc__ == "What it does."
    assert list(inspect.signature(run).parameters) == ["a", "b"]


def test_methods_and_recursion() -> None:
    class Account:
        def __init__(self, number: int) -> None:
            self.number = number

        @latch("account:{self.number}", timeout=0)
        def close(self, again: bool = False) -> int:
            return self.close() if again else self.number

    assert Account(7).close() == 7
    with pytest.raises(LatchBusy):
        Account(7).close(again=True)


def test_threads_take_turns() -> None:
    inside, most = [0], [0]

    @latch("job", timeout=10)
    def run() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        inside[0] -= 1

    threads = [threading.Thread(target=lambda: [run() for _ in range(20)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


@pytest.mark.parametrize("template", ["a:{nobody}", "a:{x}{y}", "a:{x._y}", "a:{x!r}", "a:{0}"])
def test_a_bad_template_is_told_where_it_is_written(template: str) -> None:
    with pytest.raises(LatchNameError):

        @latch(template)
        def run(x: int, y: int) -> None:
            pass


def test_a_value_that_can_be_no_part_of_a_name_names_its_parameter() -> None:
    @latch("a:{x}", timeout=0)
    def run(x: object) -> None:
        pytest.fail("it ran")

    for bad in (object(), 1.5, [1], None):
        with pytest.raises(TypeError, match="x"):
            run(bad)


def test_wrong_arguments_fail_as_they_always_did() -> None:
    @latch("a:{x}", timeout=0)
    def run(x: int) -> None:
        pass

    with pytest.raises(TypeError, match="missing"):
        run()  # type: ignore[call-arg]


def test_generators_are_refused() -> None:
    with pytest.raises(LatchValueError, match="generator"):

        @latch("job")
        def run() -> object:
            yield 1
