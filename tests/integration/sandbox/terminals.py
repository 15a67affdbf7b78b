"""A terminal for tests, and programs on it that say what happens to them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from podium.core.processes import ProcessSpec
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until
from tests.unit.sandbox.trees import ROOT

CTRL_C, CTRL_Z = b"\x03", b"\x1a"

NAMED = {
    "TERM": "dumb",
    "COLORTERM": "none",
    "PODIUM_TESTS_SECRET": "of the starter",
    "TMUX": "/somewhere/socket,1,0",
}
"""What who starts the command has in its environment."""


class Terminal:
    """A pseudo-terminal with a command as its first program, as tmux would start it."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self.text = ""
        """All that was shown."""
        self._master = master
        self._status: int | None = None
        os.set_blocking(master, False)

    async def shows(self, words: str) -> str:
        """Wait until it has shown this; gives all that was shown."""
        await retry_until(lambda: words in self._read())
        return self.text

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def exit_code(self) -> int:
        """Wait for the first program to end and return its exit code."""
        await retry_until(self.is_over)
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def is_over(self) -> bool:
        self._read()
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def go_away(self) -> None:
        """As when tmux closes a pane."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _read(self) -> str:
        with suppress(OSError):  # nothing now, or nobody holds the other end any more
            while self._master >= 0 and (data := os.read(self._master, 65536)):
                self.text += data.decode(errors="replace")
        return self.text


@contextmanager
def on_terminal(command: tuple[str, ...], env: Mapping[str, str] = NAMED) -> Iterator[Terminal]:
    """The command on a terminal of its own. Whatever is left of it is gone afterwards."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), **env}
    pid, master = pty.fork()
    if pid == 0:
        os.execve(command[0], command, variables)
    terminal = Terminal(pid, master)
    try:
        yield terminal
    finally:
        if not terminal.is_over():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        terminal.go_away()


def guard_of(terminal: Terminal) -> int:
    """The attendant's only child."""
    children = [
        int(pid)
        for thread in os.listdir(f"/proc/{terminal.pid}/task")
        for pid in _children(terminal.pid, thread)
    ]
    (guard,) = children
    return guard


def _children(pid: int, thread: str) -> list[str]:
    with open(f"/proc/{pid}/task/{thread}/children") as file:
        return file.read().split()


def is_gone(pid: int) -> bool:
    entry = entry_of(pid)
    return entry is None or entry.is_zombie


_ASK = """
import asyncio, json, sys
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher, serve_network
from tests.integration.sandbox.confined import mechanisms
launcher = ProcessLauncher(serve=serve_network({}), mechanism=mechanisms()[sys.argv[1]])
print(json.dumps(asyncio.run(launcher.on_terminal(ProcessSpec.model_validate_json(sys.argv[2])))))
"""


def command_of_a_dead_podium(mechanism: str, spawn: ProcessSpec) -> tuple[str, ...]:
    """The command for this spawn, from a Podium that is no more."""
    ended = subprocess.run(
        [sys.executable, "-c", _ASK, mechanism, spawn.model_dump_json()],
        cwd=ROOT, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return tuple(json.loads(ended.stdout))
