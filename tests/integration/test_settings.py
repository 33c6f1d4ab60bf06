"""Settings that change at run time, and projects that share a server."""

from __future__ import annotations

import threading

import pytest
import redis
from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_latch import LatchNotHeld, LatchTimeout, LatchValueError, inventory, latch
from django_latch.stale import clear_stale
from tests import servers
from tests.integration import audit
from tests.integration.aliases import latch_settings, locks_at

pytestmark = pytest.mark.usefixtures("broken_keys")  # other prefixes than the suite's


def keys(raw: redis.Redis) -> set[str]:
    return {found.split("{")[0] for found in raw.keys("*")}


def test_another_prefix(raw: redis.Redis) -> None:
    with latch_settings(PREFIX="elsewhere"), latch("job", timeout=0):
        assert keys(raw) == {"elsewhere:1:"}
    with latch("job", timeout=0):
        assert keys(raw) == {"elsewhere:1:", "latch:1:"}


def test_the_same_latch_object_follows_the_settings(raw: redis.Redis) -> None:
    shared = latch("job", timeout=0)
    with shared:
        with latch_settings(PREFIX="elsewhere", TTL=77), shared as there:
            assert there.ttl == 77
            assert keys(raw) == {"elsewhere:1:", "latch:1:"}
        assert shared.try_acquire() is None


def test_another_database() -> None:
    with latch("job", timeout=0) as lease:
        with locks_at(servers.url(1)):
            with latch("job", timeout=0):
                assert inventory.count() == 1
            with redis.Redis.from_url(servers.url(1)) as other:
                other.flushdb()
        lease.renew()
        lease.ensure_held()


def test_a_lease_stays_where_it_was_taken() -> None:
    lease = latch("job", timeout=0, ttl=0.6).acquire()
    with locks_at("redis://127.0.0.1:1/0"):
        threading.Event().wait(0.8)
        lease.ensure_held()
        lease.release()


@pytest.mark.parametrize(
    ("one", "two"),
    [("a", "b"), ("a", "a:latch"), ("", "a"), ("{x}", "x"), ("%", "%25"), ("a*", "ab")],
)
def test_two_projects_with_different_prefixes_do_not_meet(
    raw: redis.Redis, one: str, two: str
) -> None:
    with locks_at(servers.url(), KEY_PREFIX=one):
        first = latch("job", timeout=0, owner="one").acquire()
        before = {found: raw.dump(found) for found in raw.keys("*")}
        with locks_at(servers.url(), KEY_PREFIX=two):
            assert inventory.count() == 0
            assert inventory.scan() == ([], False)
            assert latch("job").inspect() is None
            with pytest.raises(LatchNotHeld):
                latch("job").adopt(first.token)
            with latch("job", timeout=0, owner="two") as second:
                with pytest.raises(LatchNotHeld):
                    inventory.clear(
                        "job",
                        fence=first.fence,
                        fingerprint=first.fingerprint,
                        reason="x",
                        actor="y",
                    )
                second.ensure_held()
            clear_stale(actor="two")
        assert {found: raw.dump(found) for found in before} == before
        first.renew()
        first.release()


def test_the_prefix_is_the_caches_own(raw: redis.Redis) -> None:
    with locks_at(servers.url(), KEY_PREFIX="shop"), latch("job", timeout=0):
        assert keys(raw) == {"shop:latch:1:"}


def test_another_alias() -> None:
    more = servers.alias(servers.url(1))
    with override_settings(CACHES={**settings.CACHES, "more": more}):
        with latch("job", timeout=0), latch("job", timeout=0, using="more"):
            assert inventory.count() == inventory.count(using="more") == 1
        with latch_settings(CACHE_ALIAS="more"), latch("job", timeout=0):
            assert inventory.count() == 1
    with redis.Redis.from_url(servers.url(1)) as other:
        other.flushdb()


@pytest.mark.parametrize(
    "backend",
    [
        "django.core.cache.backends.locmem.LocMemCache",
        "django.core.cache.backends.dummy.DummyCache",
        "django.core.cache.backends.redis.RedisCache",
    ],
)
def test_an_alias_that_is_no_django_redis(backend: str) -> None:
    other = {"locks": {"BACKEND": backend, "LOCATION": servers.url()}}
    with override_settings(CACHES=other), pytest.raises(ImproperlyConfigured) as wrong:
        latch("job", timeout=0).acquire()
    for part in ("'locks'", backend.rpartition(".")[2], servers.BACKEND, "CACHE_ALIAS"):
        assert part in str(wrong.value)


def test_an_alias_that_does_not_exist() -> None:
    with pytest.raises(ImproperlyConfigured, match="'nowhere'"):
        latch("job", timeout=0, using="nowhere").acquire()
    with latch_settings(CACHE_ALIAS="nowhere"), pytest.raises(ImproperlyConfigured):
        latch("job", timeout=0).acquire()


@pytest.mark.parametrize(
    "url", ["http://x", "127.0.0.1:6379", "redis://:pa#ss@127.0.0.1:6379/0", "redis://h:port/0"]
)
def test_a_location_that_is_no_url_is_not_shown(url: str) -> None:
    with locks_at(url), pytest.raises(ImproperlyConfigured, match="LOCATION") as wrong:
        latch("job", timeout=0).acquire()
    assert "pa" not in str(wrong.value).replace("part", "").replace("password", "")
    assert wrong.value.__cause__ is None
    assert wrong.value.__suppress_context__


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [({"TLL": 5}, "'TTL'"), ({"ttl": 5}, "'TTL'"), ({"TTL": -1}, "TTL"), ({"TTL": "30"}, "TTL")],
)
def test_a_wrong_setting_is_told_where_it_is_used(wrong: dict[str, object], hint: str) -> None:
    with (
        latch_settings(**wrong),
        pytest.raises(ImproperlyConfigured, match="DJANGO_LATCH") as error,
    ):
        latch("job", timeout=0).acquire()
    assert hint in str(error.value)


def test_maxima_hold_for_what_is_given_in_code() -> None:
    with latch_settings(MAX_TTL=60, MAX_TIMEOUT=5, TIMEOUT=5):
        with pytest.raises(LatchValueError, match="MAX_TTL"):
            latch("job", ttl=61).acquire()
        with pytest.raises(LatchValueError, match="MAX_TIMEOUT"):
            latch("job", timeout=6).acquire()


def test_the_default_timeout_is_the_settings() -> None:
    with latch_settings(TIMEOUT=0.05), latch("job"), pytest.raises(LatchTimeout):
        latch("job").acquire()


TENANT = ["one"]


def tenant() -> str | None:
    return TENANT[0]


def test_a_tenants_locks_are_its_own(raw: redis.Redis) -> None:
    shared = latch("job", timeout=0)
    with latch_settings(NAMESPACE=f"{__name__}.tenant"), shared:
        assert audit.locks(raw) == {"one:job"}
        TENANT[0] = "two"
        try:
            with shared:
                assert audit.locks(raw) == {"one:job", "two:job"}
        finally:
            TENANT[0] = "one"


def test_clearing_the_cache_removes_the_locks_and_is_noticed() -> None:
    lease = latch("job", timeout=0, ttl=0.6).acquire()
    caches["locks"].clear()
    for _ in range(400):
        if lease.lost:
            break
        threading.Event().wait(0.01)
    assert lease.lost == "missing"
