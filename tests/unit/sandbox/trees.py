"""Process trees for tests, and how to see whether any of their processes is alive."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from podium.core.processes import ProcessLimits, ProcessSpec
from podium.sandbox.guard.processes import all_entries

ROOT = Path(__file__).parents[3]
"""Where `tests` can be imported from, by the Podiums that tests start."""

# Each prelude is followed by what the first process does next.
ESCAPES = """
import os, signal, sys, time
def forever():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True: time.sleep(1000)
def escape():
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            os.write(write_end, b"x")
            os.closerange(0, 256)
            forever()
        os._exit(0)
    os.wait()
    os.read(read_end, 1)
"""


def new_token() -> str:
    """A word that stands in the command lines of one test's processes alone."""
    return f"token-{secrets.token_hex(8)}"


def python(code: str, token: str = "-", **fields: object) -> ProcessSpec:
    """A spawn of a small Python program; its forks carry the token in their command line too."""
    limits = fields.pop("limits", ProcessLimits())
    return ProcessSpec.model_validate(
        {
            "argv": (sys.executable, "-IS", "-c", code, token),
            "cwd": "/",
            "limits": limits,
            **fields,
        }
    )


def alive(token: str) -> list[int]:
    """Pids of the living processes whose command line holds the token."""
    found = []
    for entry in all_entries():
        try:
            command = Path(f"/proc/{entry.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if token.encode() in command:
            found.append(entry.pid)
    return found
