"""Check the wheel in a folder: nothing is left out, and it works in an empty environment.

Usage: check_wheel.py dist
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "django_latch"
# One of each kind at least, so that a folder that moved does not turn the comparison into nothing.
KINDS = ("lua/*.lua", "templates/**/*.html", "static/**/*.*", "migrations/0*.py", "py.typed")
TRY = """
import sys
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_latch"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1/0"}},
)
import django_latch
loaded = {"redis", "celery"} & set(sys.modules)
assert not loaded, f"import django_latch imports {loaded}"
django.setup()
import django_latch.tasks
call_command("check")
call_command("migrate", verbosity=0)
assert "site-packages" in django_latch.__file__, django_latch.__file__
print("Imported", django_latch.__file__)
"""

#: A project whose worker has Celery and nothing else that is optional.
PROJECT = """
from celery import Celery
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_latch"],
    DATABASES={},
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1/0"}},
)
import django

django.setup()
app = Celery("shop", broker="memory://")
app.autodiscover_tasks(["django_latch"])
"""


def main(folder: str) -> int:
    (wheel,) = Path(folder).glob("*.whl")
    missing = missing_files(wheel)
    if missing:
        print(f"{wheel.name} lacks:", *missing, sep="\n  ")
        return 1
    with tempfile.TemporaryDirectory() as environment:
        venv.create(environment, with_pip=True)
        python = Path(environment, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        # -I: neither the working folder nor PYTHONPATH may lend the checkout to it.
        subprocess.run([python, "-I", "-W", "error", "-c", TRY], check=True, cwd=environment)
        least = [f"{wheel.resolve()}[celery]", "django~=5.2.0"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *least], check=True)
        Path(environment, "shop.py").write_text(PROJECT, encoding="utf-8")
        start_worker(python, environment)
    print(f"{wheel.name} is complete and works in an empty environment.")
    return 0


def start_worker(python: Path, folder: str) -> None:
    """Start a Celery worker of PROJECT, which finds our tasks, and end it when it is ready."""
    command = [python, "-m", "celery", "-A", "shop", "worker", "--pool", "solo", "-l", "INFO"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **quiet) as worker:
        assert worker.stderr is not None
        printed = []
        for line in worker.stderr:
            printed.append(line)
            if " ready." in line:
                worker.terminate()
        if worker.wait() or not any(" ready." in line for line in printed):
            raise SystemExit(f"a worker does not start:\n{''.join(printed)}")
    print("A worker on Django 5.2 starts with Celery and nothing else.")


def missing_files(wheel: Path) -> list[str]:
    """Return what the wheel lacks: files of the package, and kinds that exist nowhere."""
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    wanted = {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    kinds = [f"any {kind}" for kind in KINDS if not list(PACKAGE.glob(kind))]
    return sorted(wanted - shipped) + kinds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
