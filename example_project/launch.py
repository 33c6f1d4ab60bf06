"""Runs a command that dies with the process that started it: ``launch.py PARENT COMMAND ...``.

A script of its own, not a function between fork and exec, because Python code in that place is
unsafe in a program with threads. It replaces itself by the command, which keeps its process id.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from linux/prctl.h; survives exec


def die_with(parent: int) -> None:
    """Ask the kernel (of Linux only) to kill this process when `parent` ends, however it ends."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the request was made
        sys.exit(f"process {parent} is gone")


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    # Signals that its parent holds back are not held back here: SIGTERM must end the command.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execv(sys.argv[2], sys.argv[2:])
