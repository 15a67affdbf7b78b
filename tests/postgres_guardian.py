"""Waits until the test session is gone, however it went, and ends its PostgreSQL server.

Run as a script: FOLDER, then the command that stops the server. The session holds an exclusive
lock on FOLDER/alive for as long as it lives; the kernel drops it even after `kill -9`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main(folder: Path, stop: list[str]) -> None:
    if os.fork():
        return  # whoever started us has no child to collect
    os.setsid()
    with Path(folder, "alive").open("rb") as alive, Path(folder, "starting").open("rb") as starting:
        fcntl.flock(alive, fcntl.LOCK_SH)
        # A worker of the session may be starting the server at this very moment.
        fcntl.flock(starting, fcntl.LOCK_EX)
        subprocess.run(stop, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
