"""Noticing that a pane wrote something or its program ended, at no cost while nothing happens.

tmux hands what a pane writes to a shell loop that keeps the newest of it in two files; the kernel
tells of each write. The loop belongs to the server and goes on without Podium. What is in the files
is the raw stream: a sign of life, and no text to read answers from.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from podium.agents.tui.control import Control
from podium.agents.tui.quoting import literally, quoted, without_dates
from podium.agents.tui.watching import Watch, watch_folder

_BLOCK_BYTES = 4096
_BLOCKS = 1024
"""`dd` counts reads, so a file holds at most the product of both: 4 MB."""

# Not `split`, which never stops making files; not `head`, which shows nothing before it is full.
_KEEP = (
    "umask 077; cd {folder} || exit; "
    "while dd bs={size} count={count} of={name}.now 2>/dev/null && [ -s {name}.now ]; "
    "do mv -f {name}.now {name}.before; done"
)
_END = "exec touch {folder}/#{{hook_pane}}.ended"


class Activity:
    """Counts signs of life of each pane, for one server. Closed by whoever made it."""

    def __init__(self, control: Control, folder: Path) -> None:
        """`folder` is private and for this alone."""
        self._control = control
        self._folder = folder.absolute()
        self._beats: dict[str, int] = {}
        self._woken = asyncio.Event()
        self._watch: Watch | None = None

    async def follow(self, pane: str) -> None:
        """Take note of this pane from now on. Harmless when it is followed already, also by another Podium."""
        if self._watch is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._watch = watch_folder(self._folder, self._heard)
        self._beats.setdefault(pane, 0)
        ending = _END.format(folder=shlex.quote(literally(str(self._folder))))
        keeping = _KEEP.format(
            folder=shlex.quote(without_dates(str(self._folder))),
            size=_BLOCK_BYTES,
            count=_BLOCKS,
            name=pane.removeprefix("%"),
        )
        hook = quoted(f"run-shell -b {quoted(ending)}")
        # Not `pipe-pane -o`, which closes the pipe that is there.
        pipe = quoted(f"pipe-pane -O -t {pane} {quoted(keeping)}")
        await self._control.tell(
            f"set-hook -g pane-died {hook} ; if -F -t {pane} '#{{?pane_pipe,0,1}}' {pipe}"
        )

    def beats(self, pane: str) -> int:
        """How many signs of life there were so far. Ask before looking at the screen."""
        return self._beats.get(pane, 0)

    async def beyond(self, pane: str, beats: int, seconds: float) -> bool:
        """Wait for a sign of life after so many. False when none came in time."""
        try:
            async with asyncio.timeout(seconds):
                while self.beats(pane) <= beats:
                    await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Notice nothing more. The server goes on keeping what panes write."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _heard(self, file: str) -> None:
        written = f"%{file.partition('.')[0].removeprefix('%')}"
        for pane in [written] if file else list(self._beats):
            self._beats[pane] = self.beats(pane) + 1
        # Whoever waits now is woken; whoever begins to wait later waits for the next.
        self._woken.set()
        self._woken = asyncio.Event()
