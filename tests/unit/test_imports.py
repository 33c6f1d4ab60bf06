"""What importing costs: no server library, no settings, no thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import django_latch

ROOT = Path(__file__).parents[2]


def run(code: str, *options: str) -> str:
    """The output of a program that has no settings and warns of nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["redis", "django_redis", "celery", "kombu"])
def test_importing_it_imports_no(module: str) -> None:
    assert run(f"import sys, django_latch; print({module!r} in sys.modules)") == "False"


def test_it_can_be_imported_and_latches_made_without_settings() -> None:
    code = """
import django_latch, threading
shared = django_latch.latch("job", ttl=5, timeout=0)

@django_latch.latch("report:{year}")
def build(year): ...

print(shared, threading.active_count())
"""
    assert run(code) == "<Latch 'job'> 1"


def test_using_it_without_settings_is_djangos_own_error() -> None:
    code = """
import django_latch
from django.core.exceptions import ImproperlyConfigured
try:
    django_latch.latch("job", timeout=0).acquire()
except ImproperlyConfigured as error:
    print("DJANGO_SETTINGS_MODULE" in str(error))
"""
    assert run(code) == "True"


def test_errors_need_no_django() -> None:
    code = """
import sys, importlib.util
spec = importlib.util.spec_from_file_location("errors", "django_latch/exceptions.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.LatchBusy(), "django" in sys.modules)
"""
    assert run(code, "-S") == "The lock is held by another. False"


def test_the_public_names_are_the_sorted_all() -> None:
    names = list(django_latch.__all__)
    assert names == sorted(names)
    for name in names:
        assert getattr(django_latch, name).__doc__, f"{name} has no docstring"
    public = {
        name
        for name, value in vars(django_latch).items()
        if not name.startswith("_") and not isinstance(value, type(sys)) and name != "annotations"
    }
    assert public == set(names)
