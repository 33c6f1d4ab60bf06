"""What is imported, and what is not there to be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Makes ``import celery`` fail as if it were not installed.
WITHOUT_CELERY = "import sys; sys.modules['celery'] = None; "
DJANGO = "import django; django.setup(); "


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_package_imports_neither_redis_nor_celery():
    shown = "import django_latch, sys; print({'redis', 'celery'} & set(sys.modules))"
    done = python(shown)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.parametrize("before", ["", WITHOUT_CELERY], ids=["with celery", "without"])
def test_the_tasks_module_imports_without_anything(before: str):
    """Every worker of every project imports it."""
    done = python(before + "import django_latch.tasks")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_celery_the_error_names_the_extra():
    done = python(WITHOUT_CELERY + "import django_latch.celery")
    assert "ImportError: django_latch.celery needs Celery: pip install" in done.stderr
    assert "django-latch-locks[celery]" in done.stderr


def test_decorating_needs_no_settings_and_finalises_no_app():
    code = """
from celery import current_app, shared_task
from django_latch.celery import SingleFlight, single_flight

@single_flight(key="sync:{x}", ttl=60)
@shared_task
def sync(x): ...

@shared_task(single_flight=SingleFlight(key="option:{x}"))
def option(x): ...

assert not current_app.finalized
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
