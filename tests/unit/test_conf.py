"""The settings, one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_latch.conf import SETTINGS, check_settings, conf


def test_the_defaults_are_valid() -> None:
    checked = check_settings({})
    assert (checked.ttl, checked.timeout, checked.max_waiters) == (30, 10, 100)
    assert (checked.slice, checked.live, checked.claim, checked.grace) == (2, 3, 3, 60)
    assert (checked.events, checked.cache_alias) == ("problems", "default")


WRONG = [
    ("TTL", 0),
    ("TTL", -1),
    ("TTL", "30"),
    ("TTL", True),
    ("TTL", None),
    ("TTL", float("nan")),
    ("TTL", float("inf")),
    ("TTL", 90_000),
    ("TTL", timedelta(days=-1)),
    ("TIMEOUT", -0.1),
    ("TIMEOUT", 3601),
    ("MAX_TTL", 0),
    ("MAX_TTL", 5),
    ("MAX_TIMEOUT", 5),
    ("MAX_WAITERS", -1),
    ("MAX_WAITERS", 1.5),
    ("MAX_WAITERS", True),
    ("EVENTS_MAX", 0),
    ("EVENTS", "some"),
    ("EVENTS", None),
    ("EVENTS", ["all"]),
    ("BACKEND", "memcached"),
    ("CACHE_ALIAS", 7),
    ("CACHE_ALIAS", None),
    ("CACHE_ALIAS", "a\nb"),
    ("PREFIX", b"x"),
    ("GRACE", 0.5),
    ("SLICE", 0),
    ("SLICE", 2.5),
    ("LIVE", 2.5),
    ("LIVE", 4),
    ("CLAIM", 2.9),
    ("NAMESPACE", "no.such.thing"),
    ("NAMESPACE", "nodots"),
    ("NAMESPACE", "math.pi"),
    ("NAMESPACE", len),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=lambda part: f"{part!r:.40}")
def test_a_wrong_value_names_the_setting(key: str, value: object) -> None:
    with pytest.raises(ImproperlyConfigured, match="DJANGO_LATCH") as wrong:
        check_settings({key: value})
    told = str(wrong.value)
    related = {"MAX_TTL": "TTL", "MAX_TIMEOUT": "TIMEOUT", "LIVE": "SLICE", "CLAIM": "SLICE"}
    assert key in told or related[key] in told
    assert len(told) < 400


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("TLL", "TTL"),
        ("ttl", "TTL"),
        ("CACHE_ALAIS", "CACHE_ALIAS"),
        ("EVENT", "EVENTS"),
        ("TIME_OUT", "TIMEOUT"),
    ],
)
def test_an_unknown_setting_comes_with_a_suggestion(key: str, meant: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"did you mean '{meant}'"):
        check_settings({key: 1})


@pytest.mark.parametrize("key", ["COLOUR", 7, None, ("a",)])
def test_a_setting_like_no_other_comes_with_the_whole_list(key: object) -> None:
    with pytest.raises(ImproperlyConfigured, match="known are") as wrong:
        check_settings({key: 1})
    assert all(name in str(wrong.value) for name in SETTINGS)


@pytest.mark.parametrize("given", [None, [], "TTL", 5, {"TTL"}])
def test_the_whole_must_be_a_dict(given: object) -> None:
    with pytest.raises(ImproperlyConfigured, match="must be a dict"):
        check_settings(given)


def test_durations_may_be_timedeltas() -> None:
    assert check_settings({"TTL": timedelta(minutes=1)}).ttl == 60


def test_values_are_read_when_they_are_asked_for() -> None:
    with override_settings(DJANGO_LATCH={"TTL": 5}):
        assert conf.ttl == 5
        with override_settings(DJANGO_LATCH={"TTL": 6}):
            assert conf.ttl == 6
        assert conf.ttl == 5


def test_a_dict_that_is_changed_in_place_is_noticed() -> None:
    own = {"TTL": 5}
    with override_settings(DJANGO_LATCH=own):
        assert conf.ttl == 5
        own["TTL"] = 6
        assert conf.ttl == 6
        own["TLL"] = 6
        with pytest.raises(ImproperlyConfigured):
            conf.load()


def test_without_settings_the_defaults_count() -> None:
    with override_settings():
        from django.conf import settings

        del settings.DJANGO_LATCH
        assert conf.ttl == 30


def test_the_same_settings_are_checked_once() -> None:
    with override_settings(DJANGO_LATCH={"TTL": 5}):
        assert conf.load() is conf.load()
