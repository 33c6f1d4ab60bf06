"""Text for a person who sees this for the first time; plain where it is not a terminal."""

from __future__ import annotations

import os
import sys

LABEL = 18


class Console:
    """Prints headings, facts in aligned columns, and what they prove."""

    def __init__(self) -> None:
        self.colour = (
            sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "dumb") != "dumb"
        )

    def line(self, text: str = "") -> None:
        # A log file or a pipe shall show each line when it happens.
        print(text, flush=True)

    def heading(self, text: str) -> None:
        self.line()
        self.line(self._in("1", text))

    def fact(self, label: str, text: object) -> None:
        self.line(f"  {label:<{LABEL}}  {text}")

    def proof(self, text: str) -> None:
        self.line("  " + self._in("32", f"=> {text}"))

    def problem(self, text: str) -> None:
        self.line("  " + self._in("31", f"!! {text}"))

    def _in(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text
