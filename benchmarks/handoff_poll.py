"""The plain way, for comparison: look at the pane every 0.4 seconds, and press every line by a process of its own."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import threading
from pathlib import Path

from benchmarks.handoff_harness import Carrier, Ends
from podium.core.turns import TAG

POLL_SECONDS = 0.4
_LINES_BACK = 400
_BLOCK = re.compile(rf"\[\[{TAG}\s+\{{[^\n]*\"id\":\"(.*?)\"\}}\]\].*?\[\[/{TAG}\]\]", re.DOTALL)


class Polling:
    """A thread that looks, waits, looks."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def begin(self, mouth: tuple[str, ...], ear: tuple[str, ...], folder: Path) -> None:
        place = ("-x", "400", "-y", "50", "-c", str(folder))
        self._run("new-session", "-d", "-s", "main", *place, shlex.join(mouth))
        self._run("split-window", "-h", "-t", "main", "-c", str(folder), shlex.join(ear))
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        self._run("kill-server")

    def _loop(self) -> None:
        carried = set()
        while not self._over.is_set():
            shown = self._run("capture-pane", "-t", "main.0", "-pJS", f"-{_LINES_BACK}")
            for block in _BLOCK.finditer(shown):
                if block[1] not in carried:
                    carried.add(block[1])
                    self._press(block[0])
            self._over.wait(POLL_SECONDS)

    def _press(self, text: str) -> None:
        for line in text.split("\n"):
            if line:
                self._run("send-keys", "-t", "main.1", line)
            self._run("send-keys", "-t", "main.1", "C-m")

    def _run(self, *command: str) -> str:
        return subprocess.run(
            (*self._tmux, *command), check=True, capture_output=True, text=True
        ).stdout


async def polling(folder: Path) -> Carrier:
    ends = Ends(folder, "polling")
    ends.open()
    way = Polling(folder / "polled")
    way.begin(ends.command("mouth"), ends.command("ear"), folder)
    await ends.are_up()

    async def stop() -> None:
        await asyncio.to_thread(way.end)
        ends.close()

    return Carrier("polling", ends.handoff, stop)
