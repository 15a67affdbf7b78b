"""Where guards come from: one idle process, from which each of them is forked in a moment."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from podium.sandbox.orphans import MARK_NAME, new_mark

_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that an interpreter in an unusual place may need of the environment."""


class Nursery:
    """Podium's line to that process. It is started when first needed, and again when it is lost.

    A guard does not need it any more once it is forked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner_pid = 0
        self._line: socket.socket | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def fork_guard(self, descriptors: Sequence[int]) -> None:
        """Ask for a guard that holds these descriptors. Raises `OSError` when none can be had."""
        with self._lock:
            if not self._was_asked(descriptors):
                _ask(self._start(), descriptors)

    def kill(self) -> None:
        """End it, for when it does not answer or is not needed. The guards there are go on."""
        with self._lock:
            self._let_go()
            for process in self._processes:
                process.kill()
                process.wait()

    def _was_asked(self, descriptors: Sequence[int]) -> bool:
        """False when it must be started first: it is not there, or it does not keep up."""
        # A forked copy of Podium needs its own: guards live as long as who started this one.
        if self._line is None or self._owner_pid != os.getpid():
            return False
        try:
            _ask(self._line, descriptors)
        except OSError:
            return False
        return True

    def _start(self) -> socket.socket:
        self._let_go()
        line, theirs = socket.socketpair()
        # Whoever starts a process does so on the event loop, which must not wait.
        line.setblocking(False)
        with theirs:
            self._line, self._owner_pid = line, os.getpid()
            self._processes.append(_start_process(theirs.fileno()))
        return line

    def _let_go(self) -> None:
        """Close the line. What was asked for on it is still done, then that process leaves."""
        if self._line is not None:
            self._line.close()
            self._line = None
        self._processes = [process for process in self._processes if process.poll() is None]


def _ask(line: socket.socket, descriptors: Sequence[int]) -> None:
    socket.send_fds(line, [b"."], list(descriptors))


def _start_process(requests: int) -> subprocess.Popen[bytes]:
    start = str(Path(__file__).with_name("isolated.py"))
    arguments = ("podium.sandbox.guard.forking", str(requests), str(os.getpid()))
    libraries = {name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-IS", start, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",  # holds no folder that somebody may want to remove
        env={**libraries, MARK_NAME: new_mark()},
        pass_fds=(requests,),
        start_new_session=True,  # away from the terminal and its signals
    )
