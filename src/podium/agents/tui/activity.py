"""Activity of a pane: output, the program's end, and files that it writes, at no cost while nothing happens.

tmux hands what a pane writes to a shell loop that keeps the newest of it in two files; the kernel
tells of each write. The loop belongs to the server and goes on without Podium. What is in the files
is the raw stream: a sign of life, and no text to read answers from.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from podium.agents.tui.control import Control, literally, quoted, without_dates
from podium.agents.tui.file_watch import EndWatch, Watch, watch_folder
from podium.core.errors import AgentLost, NotPossibleNow, TimedOut
from podium.platform import make_private_folder

_BLOCK_BYTES = 4096
_BLOCKS = 1024
"""`dd` counts reads, so a file holds at most the product of both: 4 MB."""

# Not `split`, which never stops making files; not `head`, which shows nothing before it is full.
_KEEP = (
    "umask 077; cd {folder} || exit; "
    "while dd bs={size} count={count} of={name}.now 2>/dev/null && [ -s {name}.now ]; "
    "do mv -f {name}.now {name}.before; done"
)

_ENDED = ".ended"
_END = f"exec touch {{folder}}/#{{{{hook_pane}}}}{_ENDED}"

SILENCE_SECONDS = 5.0
_AGAIN_SECONDS = 0.2
_MAX_COLLECTIONS = 10
"""tmux reads what is left of a program's words before it takes it for dead."""
# While tmux 3.3a has libutempter write that a terminal closed, it is deaf to the end of its children: of forty programs
# that ended on a quiet machine it did not learn of six, until the next child of its own ended.
_COLLECT = (
    "if -F -t {pane} '#{{&&:#{{pane_dead}},#{{==:#{{pane_dead_status}},}}}}' 'run-shell -b true'"
)


class Activity:
    """Counts signs of life of each pane, for one server. Closed by whoever made it."""

    def __init__(self, control: Control, folder: Path) -> None:
        """`folder` is private and for this alone."""
        self._control = control
        self._folder = folder.absolute()
        self._signs: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._callers: dict[str, list[Callable[[], None]]] = {}
        self._woken = asyncio.Event()
        self._waiting = 0
        """Number of waiters: mostly there are none, and there is much to report."""
        self._watch: Watch | None = None
        self._end_watches: dict[str, EndWatch] = {}
        self._collecting: set[asyncio.Task[None]] = set()

    async def follow(self, pane: str) -> None:
        """Take note of this pane from now on. Harmless when it is followed already, also by another Podium."""
        if self._watch is None:
            make_private_folder(self._folder)
            self._watch = watch_folder(self._folder, self._changed)
        self._signs.setdefault(pane, 0)
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
        await self._control.run(
            f"set-hook -g pane-died {hook} ; if -F -t {pane} '#{{?pane_pipe,0,1}}' {pipe}"
        )

    async def expect_end(self, pane: str) -> None:
        """Have the kernel tell when the program ends that is in the pane now: tmux may miss it."""
        (pid,) = await self._control.ask(f"display-message -p -t {pane} '#{{pane_pid}}'")
        self._forget_end(pane)
        with suppress(OSError, ValueError):  # silence tells as well, only later
            self._end_watches[pane] = EndWatch(int(pid), partial(self._has_ended, pane))

    def file(self, pane: str) -> Path:
        """Return the file with the newest of what the pane writes. It may not exist yet, and is begun anew when it is full."""
        return self._folder / f"{pane.removeprefix('%')}.now"

    def signs(self, pane: str) -> int:
        """Return the number of signs of life so far. Ask before looking at the screen."""
        return self._signs.get(pane, 0)

    def ends(self, pane: str) -> int:
        """Return how many of those signs were the end of a program."""
        return self._ends.get(pane, 0)

    async def beyond(self, pane: str, signs: int, seconds: float) -> bool:
        """Wait for a sign of life after so many. False when none came in time."""
        try:
            async with asyncio.timeout(seconds):
                while self.signs(pane) <= signs:
                    await self._until_woken(pane)
        except TimeoutError:
            return False
        return True

    async def _until_woken(self, pane: str) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            await self.collect(pane)
        finally:
            self._waiting -= 1

    async def collect(self, pane: str) -> None:
        """Have tmux learn of a program's end that it may have missed. For whoever has heard nothing for a while."""
        with suppress(AgentLost, NotPossibleNow, TimedOut):  # whoever looks at the pane is told
            await self._control.run(_COLLECT.format(pane=pane))

    def call(self, pane: str, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call this at each sign of life of the pane, right when it comes. Returns what ends that."""
        callers = self._callers.setdefault(pane, [])
        callers.append(stirred)
        return lambda: callers.remove(stirred)

    def close(self) -> None:
        """Notice nothing more. The server goes on keeping what panes write."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        for pane in list(self._end_watches):
            self._forget_end(pane)
        for collecting in self._collecting:
            collecting.cancel()

    def _has_ended(self, pane: str) -> None:
        self._forget_end(pane)
        collecting = asyncio.get_running_loop().create_task(self._learn_of_end(pane))
        self._collecting.add(collecting)
        collecting.add_done_callback(self._collecting.discard)

    async def _learn_of_end(self, pane: str) -> None:
        """Wait until tmux has, or another program is in the pane."""
        ends = self.ends(pane)
        for _ in range(_MAX_COLLECTIONS):
            await self.collect(pane)
            await asyncio.sleep(_AGAIN_SECONDS)
            if self.ends(pane) > ends or pane in self._end_watches:
                return

    def _forget_end(self, pane: str) -> None:
        if (watch := self._end_watches.pop(pane, None)) is not None:
            watch.stop()

    def _changed(self, file: str) -> None:
        written = f"%{file.partition('.')[0].removeprefix('%')}"
        for pane in [written] if file else list(self._signs):
            self._signs[pane] = self.signs(pane) + 1
            self._ends[pane] = self.ends(pane) + file.endswith(_ENDED)
            for stirred in self._callers.get(pane, ()):
                stirred()
        if self._waiting:
            # Whoever waits now is woken; whoever begins to wait later waits for the next.
            self._woken.set()
            self._woken = asyncio.Event()


_UNWATCHED_SECONDS = 0.25
"""Seconds between reads of folders of which the kernel reports nothing."""


class ChangeSignal:
    """Rings for a pane and for folders, until it is left. No polling where the kernel tells."""

    def __init__(self, activity: Activity, pane: str, is_news: Callable[[], bool]) -> None:
        """`is_news` is asked at each sign of life of the pane, many times a second: whether it rings for this one."""
        self._activity = activity
        self._pane = pane
        self._is_news = is_news
        self._has_changed = asyncio.Event()
        self._watches: dict[Path, Watch] = {}
        self._all_watched = True

    def __enter__(self) -> ChangeSignal:
        self._hang_up = self._activity.call(self._pane, self._stirred)
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()
        for watch in self._watches.values():
            watch.stop()

    def watch(self, folders: Sequence[Path]) -> None:
        """Ring for these from now on. For one that is not there yet, whatever appears above it rings."""
        self._all_watched = True
        for folder in {_nearest(path) for path in folders} - self._watches.keys():
            try:
                self._watches[folder] = watch_folder(folder, lambda _: self._has_changed.set())
            except NotPossibleNow:
                self._all_watched = False  # too much is watched on this machine

    async def wait(self, seconds: float) -> None:
        """Wait until something changed since the last time, at most so long."""
        give_up_at = asyncio.get_running_loop().time() + seconds
        longest = SILENCE_SECONDS if self._all_watched else _UNWATCHED_SECONDS
        left = seconds
        while not await self._rings_within(min(left, longest)) and self._all_watched:
            left = give_up_at - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await self._activity.collect(self._pane)
        self._has_changed.clear()

    async def _rings_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                return await self._has_changed.wait()
        except TimeoutError:
            return False

    def _stirred(self) -> None:
        if self._is_news():
            self._has_changed.set()


def _nearest(folder: Path) -> Path:
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder
