"""Starting a guard: a fork of its own for each tree, with three pipes and a control socket."""

from __future__ import annotations

import atexit
import os
import signal
import socket
from contextlib import ExitStack, suppress
from typing import IO

from podium.domain.errors import NotPossibleNow
from podium.domain.launching import Spawn
from podium.sandbox.guard.kernel import ON_LINUX
from podium.sandbox.guard.processes import Entry
from podium.sandbox.nursery import Nursery

# One for all launchers of this process, as it lives and dies with the process.
_nursery = Nursery()
atexit.register(_nursery.kill)


class RunningGuard:
    """Podium's ends of a guard's lines."""

    def __init__(
        self, control: socket.socket, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        self.control = control
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._process: Entry | None = None

    def is_process(self, pid: int, start: int) -> None:
        """Remember who it is, as it said itself. The start is 0 where that is not to be known."""
        self._process = Entry(pid, 0, "", 0, start)

    def kill(self) -> None:
        """End it, also one that never came up. Its control socket comes to an end."""
        if self._process is None:
            # Who should have forked it is stopped, and would fail the next one too.
            _nursery.kill()
            self.control.shutdown(socket.SHUT_RDWR)
        elif ON_LINUX:
            self._process.send(signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)


def start_guard(spawn: Spawn) -> RunningGuard:
    """Start a guard that waits for its order. Its stdin, stdout and stderr will be the program's."""
    try:
        return _forked()
    except OSError as error:
        raise NotPossibleNow(
            f"no process can be started for {spawn.argv[0]!r}: {error.strerror}; "
            "end something else first, or raise the limits of this user"
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
        _nursery.fork_guard([end.fileno() for end in ends])
        ours.pop_all()
        return RunningGuard(control, stdin, stdout, stderr)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """A pipe whose ends are closed together with what else these hold."""
    read_end, write_end = os.pipe()
    return (
        reader.enter_context(os.fdopen(read_end, "rb", buffering=0)),
        writer.enter_context(os.fdopen(write_end, "wb", buffering=0)),
    )
