#!/usr/bin/env python
"""Django's command line for the example project; runs from any folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    # Python looks in this file's own folder first, where celery.py and valkey.py would hide the
    # packages of the same names: look in the folder above instead.
    here = Path(__file__).resolve().parent
    sys.path[:] = [str(here.parent), *(entry for entry in sys.path if entry != str(here))]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
