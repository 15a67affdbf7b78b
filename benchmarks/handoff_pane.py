"""The program in a pane of the handoff bench: prints what it is told over a socket, and tells what it was given.

It stands alone, for a quick start: `python -IS handoff_pane.py OWN_SOCKET BENCH_SOCKET TRANSCRIPT`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
import tty

CLOSING = b"[[/POLI:MSG]]"
_PASTE_ENDS = b"\x1b[201~"
_ENTERS = (b"\r", b"\n")


def main(own: str, bench: str, transcript: str) -> None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.bind(own)
    tty.setraw(0)
    _write(b"\x1b[?2004h")
    _notify(line, bench, "up", b"")
    given = b""
    while True:
        ready, _, _ = select.select([0, line.fileno()], [], [])
        if line.fileno() in ready:
            # The mouth: what it says is complete when it has printed it and written it down.
            output = line.recv(1 << 20)
            _write(output)
            _write_down(transcript, output)
            _notify(line, bench, "printed", b"")
        if 0 in ready:
            given += os.read(0, 1 << 16)
            if is_submitted(given):
                _notify(line, bench, "submitted", given)
                given = b""


def is_submitted(given: bytes) -> bool:
    """The closing tag came, and Enter after it."""
    _, found, rest = given.rpartition(CLOSING)
    return bool(found) and rest.replace(_PASTE_ENDS, b"").endswith(_ENTERS)


def _notify(line: socket.socket, bench: str, what: str, given: bytes) -> None:
    payload = {"what": what, "at": time.monotonic(), "given": given.decode(errors="replace")}
    line.sendto(json.dumps(payload).encode(), bench)


def _write_down(transcript: str, data: bytes) -> None:
    with open(transcript, "a") as file:
        file.write(json.dumps({"text": data.decode().replace("\r\n", "\n")}) + "\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
