"""Running guards: one idle process from which each is forked, with three pipes and a control socket."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from podium.core.errors import NotPossibleNow
from podium.core.processes import ProcessSpec
from podium.sandbox.guard.processes import ON_LINUX, ProcessEntry
from podium.sandbox.orphans import TAG_VARIABLE, new_tag

_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that an interpreter in an unusual place may need of the environment."""


class GuardPool:
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
    arguments = ("podium.sandbox.guard.fork", str(requests), str(os.getpid()))
    libraries = {name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-IS", start, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",  # holds no folder that somebody may want to remove
        env={**libraries, TAG_VARIABLE: new_tag()},
        pass_fds=(requests,),
        start_new_session=True,  # away from the terminal and its signals
    )


# One for all launchers of this process, as it lives and dies with the process.
_pool = GuardPool()
atexit.register(_pool.kill)


class RunningGuard:
    """Podium's ends of a guard's lines."""

    def __init__(
        self, control: socket.socket, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        self.control = control
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._process: ProcessEntry | None = None

    def is_process(self, pid: int, start: int) -> None:
        """Remember who it is, as it said itself. The start is 0 where that is not to be known."""
        self._process = ProcessEntry(pid, 0, "", 0, start)

    def kill(self) -> None:
        """End it, also one that never came up. Its control socket comes to an end."""
        if self._process is None:
            # Who should have forked it is stopped, and would fail the next one too.
            _pool.kill()
            self.control.shutdown(socket.SHUT_RDWR)
        elif ON_LINUX:
            self._process.send(signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)


def start_guard(spawn: ProcessSpec) -> RunningGuard:
    """Start a guard that waits for its order. Its stdin, stdout and stderr will be the program's."""
    try:
        return _forked()
    except OSError as error:
        raise NotPossibleNow(
            f"cannot start a process for {spawn.argv[0]!r}: {error.strerror}; "
            "end other processes first, or raise the limits of this user"
        ) from error


def _forked() -> RunningGuard:
    with ExitStack() as theirs, ExitStack() as ours:
        guard_stdin, stdin = _pipe(theirs, ours)
        stdout, guard_stdout = _pipe(ours, theirs)
        stderr, guard_stderr = _pipe(ours, theirs)
        control, guard_control = socket.socketpair()
        ours.enter_context(control).setblocking(False)
        theirs.enter_context(guard_control)
        ends = (guard_stdin, guard_stdout, guard_stderr, guard_control)
        _pool.fork_guard([end.fileno() for end in ends])
        ours.pop_all()
        return RunningGuard(control, stdin, stdout, stderr)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """A pipe whose ends are closed together with what else these hold."""
    read_end, write_end = os.pipe()
    return (
        reader.enter_context(os.fdopen(read_end, "rb", buffering=0)),
        writer.enter_context(os.fdopen(write_end, "wb", buffering=0)),
    )
