"""A duplicate at each place of a canvas: what happens, and that nothing waits for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Task, chain, chord, group
from celery.exceptions import ChordError

from django_latch import Latch, LatchBusy
from tests.celery import flights, harness
from tests.celery.app import patient
from tests.celery.flights import echo, member, newest, stern, strict, waiting
from tests.celery.harness import Label, Worker, result, until

#: place of the duplicate -> the canvas, and its result where the duplicate is skipped.
SKIPPED: dict[str, tuple[Callable[[str], Any], Any]] = {
    "first of a chain": (lambda name: chain(member.si(name), echo.s()), "no"),
    "middle of a chain": (lambda name: chain(echo.si(1), member.si(name), echo.s()), "no"),
    "last of a chain": (lambda name: chain(echo.si(1), member.si(name)), "no"),
    "group": (lambda name: group(member.si(name), echo.si(1)), ["no", 1]),
    "header of a chord": (lambda name: chord([member.si(name), echo.si(1)], echo.s()), ["no", 1]),
    "body of a chord": (lambda name: chord([echo.si(1), echo.si(2)], member.si(name)), "no"),
    "map": (lambda name: member.map([name, name]), ["no", "no"]),
    "chunks": (lambda name: member.chunks([(name,), (name,)], 1), [["no"], ["no"]]),
    "nested": (
        lambda name: chain(group(chain(member.si(name), echo.s()), echo.si(1)), echo.s()),
        ["no", 1],
    ),
}

#: place of the duplicate -> the canvas, which fails where the duplicate raises.
RAISING: dict[str, Callable[[str], Any]] = {
    "first of a chain": lambda name: chain(strict.si(name), echo.s()),
    "middle of a chain": lambda name: chain(echo.si(1), strict.si(name), echo.s()),
    "last of a chain": lambda name: chain(echo.si(1), strict.si(name)),
    "group": lambda name: group(strict.si(name), echo.si(1)),
    "header of a chord": lambda name: chord([strict.si(name), echo.si(1)], echo.s()),
    "body of a chord": lambda name: chord([echo.si(1)], strict.si(name)),
    "map": lambda name: strict.map([name]),
    "chunks": lambda name: strict.chunks([(name,)], 1),
    "nested": lambda name: chain(group(chain(strict.si(name), echo.s()), echo.si(1)), echo.s()),
}
#: Of these, where Celery makes a chord, and where something follows the duplicate.
HEADERS = ("header of a chord", "nested")
FOLLOWED = ("first of a chain", "middle of a chain", *HEADERS)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    # The default queue: later links of a chain go there.
    flights.app.control.purge()
    with harness.worker("celery", concurrency=3, app="tests.celery.flights") as started:
        yield started


@pytest.fixture
def eager() -> Iterator[None]:
    flights.app.conf.task_always_eager = True
    yield
    flights.app.conf.task_always_eager = False


def outcome(sent) -> Any:
    """The result of a canvas, or its error, within a bounded time."""
    try:
        return sent.get(timeout=harness.PATIENCE)
    except Exception as error:  # noqa: BLE001  told to the test
        return type(error)


def waiters(name: str) -> int:
    seen = Latch(name).inspect()
    return seen.waiters if seen else 0


@pytest.fixture
def taken(label: Label) -> Iterator[str]:
    """The name of a test whose duplicate meets a lock that is held."""
    with Latch(f"member:{label}"):
        yield str(label)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("place", SKIPPED)
def test_a_skipped_duplicate(taken: str, place: str):
    make, expected = SKIPPED[place]
    assert outcome(make(taken).apply_async()) == expected


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("place", SKIPPED)
def test_a_skipped_duplicate_in_eager_mode(taken: str, place: str):
    make, expected = SKIPPED[place]
    assert outcome(make(taken).apply_async()) == expected


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("place", RAISING)
def test_a_duplicate_that_raises(taken: str, place: str):
    expected = (ChordError, LatchBusy) if place in HEADERS else LatchBusy
    assert issubclass(outcome(RAISING[place](taken).apply_async()), expected)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("place", RAISING)
def test_a_duplicate_that_raises_in_eager_mode(taken: str, place: str):
    """Where something follows, Celery asks for the result at once, so the call itself raises."""
    if place in FOLLOWED:
        with pytest.raises(LatchBusy):
            RAISING[place](taken).apply_async()
    else:
        assert outcome(RAISING[place](taken).apply_async()) is LatchBusy


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("task", "key", "met"),
    [
        (patient, "patient", lambda label: label.next("task_deferred", of=":signals")),
        (waiting, "waiting", lambda label: until(lambda: waiters(f"waiting:{label}") == 2)),
    ],
)
def test_a_duplicate_that_comes_later(label: Label, task: Task, key: str, met):
    label.open(3)
    with Latch(f"{key}:{label}"):
        part = task.si(str(label))
        links = chain(echo.si(1), part, echo.s()).apply_async()
        whole = chord([part.clone(), echo.si(1)], echo.s()).apply_async()
        for _ in range(2):
            met(label)
    assert outcome(links) == "done"
    assert outcome(whole) == ["done", 1]


@pytest.mark.usefixtures("worker")
def test_duplicates_that_become_one_next_run(label: Label):
    label.open()
    with Latch(f"newest:{label}"):
        sent = group(newest.si(str(label), value) for value in range(5)).apply_async()
        until(lambda: sum(one.ready() for one in sent) == 4)
    results = outcome(sent)
    assert results.count("merged") == 4
    (ran,) = set(results) - {"merged"}
    assert label.next("run")["value"] == ran
    label.nothing_left()


@pytest.mark.parametrize("link", [member, strict, stern])
def test_link(worker: Worker, taken: str, link: Task):
    """It is not sent, and never changes the result of the first task."""
    worker.forget()
    assert result(echo.apply_async((5,), link=link.si(taken))) == 5
    worker.wait_for(f"{link.name}: not sent, ")


@pytest.mark.parametrize(
    ("link", "says"),
    [(member, "member: skipped, "), (strict, "raised unexpected: LatchBusy")],
)
def test_link_error(worker: Worker, taken: str, link: Task, says: str):
    """Celery sends error callbacks as a group, so it is sent, and meets the lock at its run."""
    worker.forget()
    sent = flights.fails.apply_async((taken,), link_error=link.si(taken))
    with pytest.raises(ValueError, match=taken):
        result(sent)
    worker.wait_for(says)


@pytest.mark.usefixtures("worker")
def test_replace(taken: str):
    assert result(flights.becomes.apply_async((taken,))) == "no"
    with pytest.raises(LatchBusy):
        result(flights.becomes.apply_async((taken, strict.name)))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    "make",
    [
        lambda: chain(echo.si({"of no": "name"}), member.s()),
        lambda: chain(echo.si({"of no": "name"}), member.s(), echo.s()),
        lambda: chord([echo.si(1)], member.s()),
    ],
    ids=["last of a chain", "middle of a chain", "body of a chord"],
)
def test_arguments_that_make_no_key_fail_the_member(make: Callable[[], Any]):
    """And not the task whose result they are: the member would never be sent, nor end."""
    last = first = make().apply_async()
    assert outcome(last) is TypeError
    while first.parent is not None:
        first = first.parent
    assert result(first)


@pytest.mark.usefixtures("worker")
def test_arguments_that_make_no_key_of_a_link():
    assert result(echo.apply_async(({},), link=member.s())) == {}


@pytest.mark.usefixtures("worker")
def test_members_that_are_duplicates_of_each_other(label: Label):
    sent = chord([member.si(str(label)) for _ in range(6)], echo.s()).apply_async()
    results = outcome(sent)
    assert len(results) == 6
    assert "done" in results
    assert set(results) <= {"done", "no"}
    assert Latch(f"member:{label}").inspect() is None


@pytest.mark.usefixtures("worker")
def test_beside_a_queued_twin(label: Label):
    """A member goes out though its twin is queued; at its run it meets that lock."""
    twin = member.apply_async((str(label),), queue=f"{label}-nobody")
    sent = chain(member.si(str(label)), echo.s()).apply_async()
    assert outcome(sent) == "no"
    assert Latch(f"member:{label}").inspect().holder.owner.task_id == twin.id
