"""Processes that all want one lock, and a file that tells whether two ever had it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from tests.integration.programs import PREAMBLE, Program, program

#: Whether there are minutes to spend: `make chaos-long`.
LONG = os.environ.get("LATCH_CHAOS") == "long"


def spell(seconds: float) -> float:
    """How long to go on, where it would be so many seconds if there were minutes to spend."""
    return seconds if LONG else seconds / 2


#: Each enters where only one may be, and writes its fence down there.
WORKER = """
import random
from pathlib import Path

inside, log = Path(FOLDER, "inside"), Path(FOLDER, "log")
random.seed(os.getpid())
shared = latch("job", timeout={timeout}, ttl={ttl})

def alive(pid):
    try:
        stat = Path(f"/proc/{{pid}}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"

def alone():
    try:
        os.symlink(str(os.getpid()), inside)
    except FileExistsError:
        if alive(os.readlink(inside)):
            return False
        inside.unlink()
        os.symlink(str(os.getpid()), inside)
    return True

say("ready")
hear()
end, runs, refused = time.monotonic() + {seconds}, 0, 0
while time.monotonic() < end or runs < {least}:
    try:
        lease = shared.acquire()
    except (LatchNotAcquired, LatchUnavailable):
        refused += 1
        time.sleep(random.random() * {rest})
        continue
    if {check} and not alone():
        say("OVERLAP", lease.fence)
        os._exit(1)
    with log.open("a") as out:
        out.write(f"{{lease.fence}}\\n")
    time.sleep(random.random() * {work})
    if {check}:
        inside.unlink()
    try:
        lease.release()
    except (LatchNotHeld, LatchUnavailable) as error:
        {on_loss}
    runs += 1
say("done", runs, refused)
"""


class Crowd(ExitStack):
    """So many workers, started at once."""

    def __init__(self, folder: Path, count: int, **options: object) -> None:
        super().__init__()
        self.folder = folder
        defaults = {"timeout": 0, "ttl": 5, "seconds": 10, "work": 0.003, "rest": 0.002, "least": 0}
        self._code = WORKER.format(**{**defaults, "check": True, "on_loss": "raise", **options})
        self.workers: list[Program] = [self.more() for _ in range(count)]

    def more(self, **env: str) -> Program:
        """One worker more, which waits for `go`."""
        setup = f"{PREAMBLE}\nFOLDER = {str(self.folder)!r}\n"
        return self.enter_context(program(self._code, setup=setup, **env))

    def start(self) -> None:
        """Let them all go."""
        for worker in self.workers:
            worker.expect("ready")
        for worker in self.workers:
            worker.say("go")

    def results(self) -> tuple[list[int], list[int]]:
        """How often each ran and was refused."""
        said = [worker.hear().split() for worker in self.workers]
        assert {words[0] for words in said} == {"done"}, said
        assert [worker.end() for worker in self.workers] == [0] * len(self.workers)
        return [int(words[1]) for words in said], [int(words[2]) for words in said]

    def fences(self) -> list[int]:
        """The fences in the order in which their holders wrote them down."""
        return [int(line) for line in (self.folder / "log").read_text().split()]
