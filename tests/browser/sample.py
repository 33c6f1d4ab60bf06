"""Locks as a busy project has them, and some that nobody would choose in good faith."""

from __future__ import annotations

from tests.holding import Hold

MARKUP = "<script>alert(1)</script>"
LONG = "x" * 255
ODD = {
    MARKUP: "markup",
    LONG: "long",
    "a " * 127 + "b": "words",
    "名前 Ω ñ é": "scripts",
    "مرحبا": "right to left",
    "..": "dots",
    "a/b?c=d#e&f%2F_5F": "an address",
}


def busy(hold: Hold) -> None:
    """A dozen locks of several workers."""
    for number in range(12):
        task = ("billing.sync_customer", "mail.send", "reports.build_monthly")[number % 3]
        hold(
            f"{task}:{4711 + number * 37}",
            ttl=60 + number * 45,
            task=task,
            task_id=f"6f1c5b0e-0000-4000-8000-{number:012}",
            worker=f"celery@web{number % 4}",
            host=f"web{number % 4}",
            pid=1000 + number,
            args=f"({4711 + number * 37},)",
        )
    for number in range(3):
        hold("import:statements", limit=5, label=f"nightly import {number}", host="batch1", pid=77)
    for name, kind in ODD.items():
        hold(name, task=f"{kind}.{MARKUP}", worker=f"w@{kind}", host="odd", pid=1)
