"""The decorator works wherever it is written, and changes nothing else about a task."""

from __future__ import annotations

import inspect
from weakref import WeakSet

import pytest
from celery import Celery, Task, _state, shared_task
from celery.local import PromiseProxy, Proxy

from django_latch import LatchBusy, LatchNameError, LatchValueError, current_lease, latch
from django_latch.celery import SingleFlight, single_flight
from django_latch.celery.placement import _promised

FLIGHT = {"key": "place:{x}", "on_conflict": "raise"}


@pytest.fixture
def app(monkeypatch):
    """A Celery app of the test's own, the only one while the test runs."""
    monkeypatch.setattr(_state, "_apps", WeakSet())
    monkeypatch.setattr(_state, "_on_app_finalizers", set(_state._on_app_finalizers))
    monkeypatch.setattr(_state._tls, "current_app", None)
    with Celery("placement", broker="memory://", backend="cache+memory://") as app:
        yield app


def lock_name():
    lease = current_lease()
    return lease and lease.name


def above_shared(app):
    @single_flight(**FLIGHT)
    @shared_task
    def above(x, y=0):
        return lock_name()

    return above


def above_app_task(app):
    @single_flight(**FLIGHT)
    @app.task
    def above_own(x, y=0):
        return lock_name()

    return above_own


def above_finalized(app):
    app.finalize()
    return above_app_task(app)


def above_shared_finalized(app):
    app.finalize()
    return above_shared(app)


def above_bound(app):
    @single_flight(**FLIGHT)
    @shared_task(bind=True)
    def above(self, x, y=0):
        assert isinstance(self, Task)
        return lock_name()

    return above


def above_with_autoretry(app):
    @single_flight(**FLIGHT)
    @shared_task(bind=True, autoretry_for=(KeyError,))
    def above(self, x, y=0):
        return lock_name()

    return above


def above_with_base_and_name(app):
    class Base(Task):
        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs)

    @single_flight(**FLIGHT)
    @shared_task(base=Base, name="a.name.of.its.own")
    def above(x, y=0):
        return lock_name()

    return above


def under_shared(app):
    @shared_task
    @single_flight(**FLIGHT)
    def under(x, y=0):
        return lock_name()

    return under


def under_bound(app):
    @app.task(bind=True)
    @single_flight(**FLIGHT)
    def under(self, x, y=0):
        assert isinstance(self, Task)
        return lock_name()

    return under


def option(app):
    @shared_task(single_flight=SingleFlight(**FLIGHT))
    def option(x, y=0):
        return lock_name()

    return option


def option_bound(app):
    @app.task(bind=True, autoretry_for=(KeyError,), single_flight=SingleFlight(**FLIGHT))
    def option(self, x, y=0):
        assert isinstance(self, Task)
        return lock_name()

    return option


def class_attribute(app):
    class Sync(Task):
        name = "sync.by.class"
        single_flight = SingleFlight(**FLIGHT)

        def run(self, x, y=0):
            return lock_name()

    return app.register_task(Sync())


def base_class(app):
    class Guarded(Task):
        single_flight = SingleFlight(**FLIGHT)

    @app.task(base=Guarded)
    def based(x, y=0):
        return lock_name()

    return based


PLACEMENTS = [
    above_shared,
    above_app_task,
    above_finalized,
    above_shared_finalized,
    above_bound,
    above_with_autoretry,
    above_with_base_and_name,
    under_shared,
    under_bound,
    option,
    option_bound,
    class_attribute,
    base_class,
]
WITH_HANDLE = [place for place in PLACEMENTS if not place.__name__.startswith("under")]


@pytest.fixture(params=PLACEMENTS, ids=lambda place: place.__name__)
def task(request, app):
    return request.param(app)


@pytest.fixture(params=WITH_HANDLE, ids=lambda place: place.__name__)
def task_with_handle(request, app):
    return request.param(app)


class TestEachPlacement:
    def test_it_runs_under_its_lock(self, task):
        assert task(5) == "place:5"
        assert task.apply((6,)).get() == "place:6"
        assert task.apply(kwargs={"x": 7}).get() == "place:7"
        assert current_lease() is None

    def test_a_second_call_is_refused(self, app, task):
        with latch("place:5", timeout=0):
            with pytest.raises(LatchBusy):
                task(5)
            assert isinstance(task.apply((5,)).result, LatchBusy)
            assert task(6) == "place:6"
        assert task(5) == "place:5"

    def test_celery_still_checks_arguments_at_the_caller(self, app, task):
        if task.name == "sync.by.class":  # Celery does not check those
            task.delay()
            return
        with pytest.raises(TypeError):
            task.delay()
        with pytest.raises(TypeError):
            task.delay(1, 2, 3)
        with pytest.raises(TypeError):
            task.apply_async((1,), {"z": 1})

    def test_the_signature_is_the_function_s(self, app, task):
        assert str(inspect.signature(task.run)) == "(x, y=0)"

    def test_apply_async_takes_what_it_took(self, app, task):
        result = task.apply_async((5,), None, "the-id", retry=False, queue="q")
        assert result.id == "the-id"

    def test_an_annotation_of_the_project_leaves_the_lock_in_place(self, app, task):
        seen = []
        app.conf.task_annotations = {task.name: {"rate_limit": "5/s"}}
        task.bind(app)
        seen.append(task(5))
        assert seen == ["place:5"]


class TestTheHandle:
    def test_it_names_the_lock(self, task_with_handle):
        handle = task_with_handle.single_flight
        assert handle.key(5) == handle.key(x=5, y=1) == "place:5"
        assert repr(handle) == f"<single_flight of {task_with_handle.name}>"
        with pytest.raises(TypeError):
            handle.key()

    def test_it_knows_whether_a_call_runs(self, task_with_handle):
        handle = task_with_handle.single_flight
        assert not handle.is_running(5)
        with handle.lock(5):
            assert handle.is_running(5)
            assert not handle.is_running(6)
            with pytest.raises(LatchBusy):
                task_with_handle(5)
        assert not handle.is_running(5)


def test_the_promise_stays_a_promise(app):
    shared, own = above_shared(app), above_app_task(app)
    assert type(shared) is Proxy
    assert type(own) is PromiseProxy
    assert not app.finalized
    assert not own.__evaluated__()


def test_the_function_behind_a_promise_can_be_seen(app):
    """Celery's own attributes: this fails on the release that renames them."""

    def work(x):
        return x

    assert _promised(shared_task(work)) is work
    assert _promised(shared_task(bind=True)(work)) is work
    assert _promised(app.task(work)) is work
    kept = app.task(work, name="kept")
    assert kept.name == "kept"
    assert _promised(kept) is None


@pytest.mark.parametrize("decorator", ["shared", "app"])
def test_a_template_that_does_not_fit_is_an_error_at_import(app, decorator):
    def sync(account):
        """Never called."""

    task = shared_task(sync) if decorator == "shared" else app.task(sync)
    with pytest.raises(LatchNameError, match="'acount' is not a parameter"):
        single_flight(key="sync:{acount}")(task)


def test_two_guards_are_one_too_many(app):
    def sync(x):
        """Never called."""

    once = single_flight(key="a:{x}")(sync)
    for second in (once, shared_task(once), app.task(once)):
        with pytest.raises(LatchValueError, match="has one already"):
            single_flight(key="b:{x}")(second)


def test_what_only_shows_once_the_task_exists_stops_the_task(app):
    """Celery logs errors in its signal handlers and goes on: not without the lock."""

    @single_flight(key="a:{self}")
    @shared_task(bind=True)
    def sync(self, x):
        """Never called."""

    for call in (lambda: sync(1), lambda: sync.delay(1)):
        with pytest.raises(LatchNameError, match="'self' is not a parameter"):
            call()


def test_all_apps_that_share_a_task_have_the_guard(app):
    shared, own = above_shared(app), above_app_task(app)
    names = shared.name, own.name
    with Celery("second", broker="memory://", set_as_current=False) as second:
        for name in names:
            assert app.tasks[name](1) == second.tasks[name](1) == "place:1"
            assert second.tasks[name].single_flight.key(2) == "place:2"
    with Celery("third", broker="memory://", set_as_current=False) as third:
        assert third.tasks[names[0]] is not app.tasks[names[0]]
        assert third.tasks[names[0]](1) == "place:1"


def test_a_base_class_and_its_other_tasks_stay_as_they_were(app):
    class Base(Task):
        """Shared by both tasks."""

    @single_flight(**FLIGHT)
    @app.task(base=Base)
    def guarded(x):
        return lock_name()

    @app.task(base=Base)
    def free(x):
        return lock_name()

    assert (guarded(1), free(1)) == ("place:1", None)
    assert Base.apply_async is Task.apply_async
    assert Base.run is Task.run


def test_derived_classes_are_guarded_once(app):
    class Parent(Task):
        name = "parent"
        single_flight = SingleFlight(**FLIGHT)

        def run(self, x):
            return lock_name()

    class Child(Parent):
        name = "child"

        def run(self, x):
            return ("child", super().run(x))

    assert app.register_task(Child())(5) == ("child", "place:5")
    assert app.register_task(Parent())(5) == "place:5"


def test_options_on_anything_but_a_task_class_are_refused():
    with pytest.raises((LatchValueError, RuntimeError)) as caught:

        class Mixin:
            single_flight = SingleFlight(**FLIGHT)

    assert "celery.Task class only" in str(caught.value.__cause__ or caught.value)

    class Kept:
        policy = SingleFlight(**FLIGHT)

    assert isinstance(Kept.policy, SingleFlight)


def test_a_derived_class_may_opt_out_or_choose_its_own(app):
    class Parent(Task):
        single_flight = SingleFlight(**FLIGHT)

        def run(self, x):
            return lock_name()

    class Other(Parent):
        name = "other"
        single_flight = SingleFlight(key="other:{x}")

    class Free(Parent):
        name = "free"
        single_flight = None

    assert app.register_task(Other())(5) == "other:5"
    assert app.register_task(Free())(5) is None


def test_a_function_that_never_becomes_a_task(app):
    @single_flight(key="plain:{x}")
    def plain(x):
        return lock_name()

    @app.task
    def caller(x):
        return plain(x)

    assert plain(1) == caller(1) == "plain:1"


def test_bare_decorator(app):
    @single_flight
    @app.task(name="bare")
    def bare(x):
        return lock_name()

    assert bare(1) == "bare(x=1)"


class TestPydantic:
    """With ``pydantic=True`` callers pass a model, and messages its dump."""

    @pytest.fixture
    def order(self):
        pydantic = pytest.importorskip("pydantic")
        pytest.importorskip("celery", "5.5")

        class Order(pydantic.BaseModel):
            number: int

        return Order

    @pytest.fixture(params=["above", "under", "option"])
    def task(self, request, app, order):
        def place(x):
            return x.number, lock_name()

        place.__annotations__ = {"x": order}
        options = {"key": "order:{x.number}", "on_conflict": "raise"}
        if request.param == "above":
            return single_flight(**options)(shared_task(pydantic=True)(place))
        if request.param == "under":
            return shared_task(pydantic=True)(single_flight(**options)(place))
        return shared_task(pydantic=True, single_flight=SingleFlight(**options))(place)

    def test_a_model_and_its_dump_take_the_same_lock(self, task, order):
        assert task.apply((order(number=5),)).get() == (5, "order:5")
        assert task.apply(({"number": 5},)).get() == (5, "order:5")
        with latch("order:5", timeout=0):
            for given in order(number=5), {"number": 5}:
                with pytest.raises(LatchBusy):
                    task(given)
