"""Starting a guard: a fresh, isolated interpreter with three pipes and a control socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import podium
from podium.domain.errors import NotPossibleNow
from podium.domain.launching import Spawn
from podium.sandbox.orphans import MARK_NAME

# Gives the guard a `podium` without running the packages' own `__init__` files, which load much
# that it does not need.
_GUARD_CODE = """
import sys
for name, folder in (("podium", sys.argv[1]), ("podium.sandbox", sys.argv[2])):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [folder]
from podium.sandbox.guard.watch import main
main(int(sys.argv[3]))
"""
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that an interpreter in an unusual place may need of the environment."""


class RunningGuard:
    """A guard's process and Podium's ends of its lines."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self.control = control
        self.stdin = _opened(process.stdin)
        self.stdout = _opened(process.stdout)
        self.stderr = _opened(process.stderr)

    def kill(self) -> None:
        self._process.kill()

    def collect(self) -> None:
        """Take a guard that ended off the process table and close the control socket."""
        self.control.close()
        self._process.wait()


def start_guard(spawn: Spawn, mark: str) -> RunningGuard:
    """Start a guard that waits for its order. Its stdin, stdout and stderr will be the program's."""
    control, theirs = socket.socketpair()
    control.setblocking(False)
    with theirs:
        try:
            return RunningGuard(_start(theirs.fileno(), mark), control)
        except OSError as error:
            control.close()
            raise NotPossibleNow(
                f"no process can be started for {spawn.argv[0]!r}: {error.strerror}; "
                "end something else first, or raise the limits of this user"
            ) from error


def _start(control: int, mark: str) -> subprocess.Popen[bytes]:
    package = Path(podium.__file__).parent
    libraries = {name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ}
    code = (_GUARD_CODE, str(package), str(package / "sandbox"), str(control))
    return subprocess.Popen(
        [sys.executable, "-IS", "-c", *code],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",  # holds no folder that somebody may want to remove
        env={**libraries, MARK_NAME: mark},
        pass_fds=(control,),
        start_new_session=True,  # away from the terminal and its signals
    )


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise NotPossibleNow("a process was started without its pipes; try again")
    return pipe
