"""Becomes another command that cannot outlive its parent: `python -m router.asking.tether PARENT_PID COMMAND...`.

Linux kills the process when its parent ends, even by SIGKILL; the setting survives `exec`. Doing it here, after the
fork and in a fresh interpreter, keeps Python code out of the forked child of a threaded parent. Elsewhere than on Linux
the command just runs, and ends by the parent's SIGTERM.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Tie this process to PARENT_PID and become COMMAND. Exits with 1 when the parent has gone already."""
    parent, command = int(argv[0]), argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the call took effect
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - the command comes from our own supervisor


if __name__ == "__main__":
    main(sys.argv[1:])
