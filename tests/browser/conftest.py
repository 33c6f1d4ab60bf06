"""Chromium, driven by Playwright, on the live server of pytest-django and the run's Valkey."""

from __future__ import annotations

import importlib.util
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client, override_settings

from django_latch import LatchNotHeld, inventory, latch
from tests.browser.visits import Visit
from tests.holding import Hold, holding
from tests.integration.until import until
from tests.services import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pytest_django.live_server_helper import LiveServer

# Without the dependency group "browser" there is nothing to collect.
collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["test_*.py"]

#: The path of a Chromium, for machines where it has an unusual name.
BROWSER = "LATCH_CHROMIUM"

WIDE, NARROW = 1280, 400


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser without windows; without it there is no test."""
    given = os.environ.get(BROWSER) or shutil.which("chromium")
    if not given or not shutil.which(given):
        missing(f"there is no Chromium: apt-get install chromium, or set {BROWSER} to its path")
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright runs an event loop in this thread, which Django takes for an async caller.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=given)
        yield browser
        browser.close()


@pytest.fixture(scope="session", autouse=True)
def _strict() -> Iterator[None]:
    """Every page under a strict policy, from before the live server starts."""
    middleware = ["tests.browser.policy.strict", *settings.MIDDLEWARE]
    with override_settings(MIDDLEWARE=middleware):
        yield


class Visiting(Protocol):
    """Opens a window; see `visit`."""

    def __call__(self, *codenames: str, user: str = ..., **options: Any) -> Visit: ...


@contextmanager
def windows(chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens windows; at the end none of them may have complained."""
    opened: list[Visit] = []
    with ExitStack() as closing:

        def window(site: str, *, width: int = WIDE, **options: Any) -> Visit:
            size = {"width": width, "height": 800}
            context = chromium.new_context(viewport=size, locale="en-GB", **options)
            closing.callback(context.close)
            opened.append(Visit(context, site))
            return opened[-1]

        yield window
    assert [error for visit in opened for error in visit.errors] == []


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer) -> Iterator[Visiting]:
    """Log in as a user with these permissions (a superuser if none is named), in a new window.

    `user=""` stays outside; other options are Playwright's for a context, and `width`.
    """
    with windows(chromium) as window:

        def enter(*codenames: str, user: str = "root", **options: Any) -> Visit:
            opened = window(live_server.url, **options)
            if user:
                client = Client()
                client.force_login(known(user, codenames))
                cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
                name = settings.SESSION_COOKIE_NAME
                opened.context.add_cookies(
                    [{"name": name, "value": cookie, "url": live_server.url}]
                )
            return opened

        yield enter


def known(name: str, codenames: tuple[str, ...]) -> Any:
    """A member of the staff with these permissions; a superuser if none are named."""
    users = get_user_model().objects
    found = users.filter(username=name).first()
    if found:
        return found
    if not codenames:
        return users.create_superuser(name, password="secret")
    user = users.create_user(name, password="secret", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    assert user.user_permissions.count() == len(codenames)
    return user


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Take a lock as if the process with these facts had done so."""
    with holding() as take:
        yield take


@pytest.fixture
def queue_up(hold: Hold) -> Iterator[Callable[[str], None]]:
    """Let one more thread wait for a lock, until the lock is free or the test over."""
    waiting: dict[threading.Thread, str] = {}

    def wait(name: str) -> None:
        latch(name, timeout=120).acquire().release()

    def waiters(name: str) -> int:
        found = inventory.get(name)
        return found.waiters if found else 0

    def start(name: str) -> None:
        before = waiters(name)
        thread = threading.Thread(target=wait, args=(name,))
        thread.start()
        waiting[thread] = name
        until(lambda: waiters(name) > before)

    yield start
    for name in set(waiting.values()):
        found = inventory.get(name)
        for holder in found.holders if found else ():
            with suppress(LatchNotHeld):  # it was one of those that waited, and is done
                inventory.clear(
                    name,
                    fence=holder.fence,
                    fingerprint=holder.fingerprint,
                    reason="the test is over",
                    actor="tests",
                )
    for thread in waiting:
        thread.join()
