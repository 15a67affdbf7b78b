"""Activity of a pane: output, the program's end, and files that it writes, as the kernel reports them; no polling.

tmux hands what a pane writes to a shell loop that keeps the newest of it in two files; the kernel
tells of each write. The loop belongs to the server and goes on without Podium. What is in the files
is the raw stream: a sign of life, and no text to read answers from.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import select
import shlex
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from podium.agents.tui.control import Control, literally, quoted, without_dates
from podium.core.errors import AgentLost, NotPossibleNow, TimedOut
from podium.platform import make_private_folder

OnChange = Callable[[str], None]
"""Is given the name of a file that was written to or made; an empty one when any may have been."""

_WRITTEN, _CLOSED, _MADE = 0x2, 0x8, 0x100
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
_FLOOD_SECONDS = 0.004
_BREATH_SECONDS = 0.25
"""Changes that come so fast on average are reported so often: of fifty programs that move, an answer a little later for a
fraction of the work."""
_NEW_PART = 0.01
"""Some hundred events in quick succession make it so; a program that writes a long answer makes fewer."""


class Watch(Protocol):
    """An ear at a folder."""

    def stop(self) -> None:
        """Hear no more. Harmless when called twice."""
        ...


def watch_folder(folder: Path, on_change: OnChange) -> Watch:
    """Call `heard` in this event loop for what happens to the folder's files, until stopped."""
    if sys.platform != "linux":
        return _Kqueue(folder, on_change)
    return _Inotify(folder, on_change)


class _Inotify:
    """Linux: one watch for the folder tells of every file in it."""

    def __init__(self, folder: Path, on_change: OnChange) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._on_change = on_change
        self._file = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        mask = _WRITTEN | _CLOSED | _MADE
        if self._file < 0 or libc.inotify_add_watch(self._file, os.fsencode(folder), mask) < 0:
            why = os.strerror(ctypes.get_errno())
            self._close()
            raise NotPossibleNow(
                f"{str(folder)!r} cannot be watched: {why}; raise fs.inotify.max_user_instances and "
                "fs.inotify.max_user_watches, or end programs that watch many files"
            )
        self._loop = asyncio.get_running_loop()
        self._notified_at = self._loop.time()
        self._usual_seconds = 1.0
        """Between two events, by and large."""
        self._loop.add_reader(self._file, self._on_kernel)

    def stop(self) -> None:
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _on_kernel(self) -> None:
        self._hear()
        if self._usual_seconds < _FLOOD_SECONDS:
            # Where many programs redraw their screens all the time, hear of several at once.
            self._loop.remove_reader(self._file)
            self._loop.call_later(_BREATH_SECONDS, self._after_breath)

    def _after_breath(self) -> None:
        if self._file < 0:
            return
        if self._hear() and self._usual_seconds < _FLOOD_SECONDS:
            self._loop.call_later(_BREATH_SECONDS, self._after_breath)
        else:
            self._loop.add_reader(self._file, self._on_kernel)

    def _hear(self) -> bool:
        """Tell of all that has happened. False: nothing has."""
        events = 0
        names: dict[bytes, None] = {}
        while data := self._read():
            at = 0
            while at < len(data):
                *_, length = _EVENT.unpack_from(data, at)
                names[data[at + _EVENT.size : at + _EVENT.size + length]] = None
                at += _EVENT.size + length
                events += 1
            if len(data) < _READ_BYTES // 2:
                break  # that was all
        if events:
            self._note_pace(events)
        for name in names:
            self._on_change(os.fsdecode(name.rstrip(b"\0")))
        return events > 0

    def _read(self) -> bytes:
        try:
            return os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return b""

    def _note_pace(self, events: int) -> None:
        now = self._loop.time()
        passed, self._notified_at = min((now - self._notified_at) / events, 1.0), now
        self._usual_seconds += (passed - self._usual_seconds) * min(_NEW_PART * events, 1.0)


if sys.platform != "linux":

    class _Kqueue:
        """macOS: the folder tells of new names only, so each file is watched as well."""

        def __init__(self, folder: Path, on_change: OnChange) -> None:
            self._folder = folder
            self._on_change = on_change
            self._queue = select.kqueue()
            self._names: dict[int, str] = {}
            self._add(folder, "")
            self._add_new()
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._queue.fileno(), self._on_kernel)

        def stop(self) -> None:
            if not self._queue.closed:
                self._loop.remove_reader(self._queue.fileno())
                self._queue.close()
                for file in self._names:
                    os.close(file)

        def _add(self, path: Path, name: str) -> None:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._names[file] = name
            flags = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND | select.KQ_NOTE_ATTRIB
            gone = select.KQ_NOTE_RENAME | select.KQ_NOTE_DELETE
            how = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            event = select.kevent(file, select.KQ_FILTER_VNODE, how, flags | gone)
            self._queue.control([event], 0)

        def _add_new(self) -> list[str]:
            names = set(self._names.values())
            new = [path for path in self._folder.iterdir() if path.name not in names]
            for path in new:
                self._add(path, path.name)
            return [path.name for path in new]

        def _on_kernel(self) -> None:
            for event in self._queue.control(None, 64, 0):
                name = self._names[event.ident]
                if event.fflags & (select.KQ_NOTE_RENAME | select.KQ_NOTE_DELETE):
                    os.close(event.ident)
                    del self._names[event.ident]
                for changed in self._add_new() if not name else [name]:
                    self._on_change(changed)


class EndWatch:
    """Tells once that a process has ended. Stopped by whoever made it."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        """Tells at once of one that is not there any more. Raises `OSError` where the kernel does not tell of ends."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._handle = -1
        self._notification: asyncio.Handle | None = None
        try:
            self._handle = _handle_of(pid)
        except ProcessLookupError:
            self._notification = self._loop.call_soon(ended)
        else:
            self._loop.add_reader(self._handle, self._on_kernel)

    def stop(self) -> None:
        """Tell nothing more. Harmless when called twice."""
        if self._notification is not None:
            self._notification.cancel()
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _on_kernel(self) -> None:
        self.stop()
        self._ended()


if sys.platform == "linux":

    def _handle_of(pid: int) -> int:
        """A file that can be read from once the process has ended."""
        if not hasattr(os, "pidfd_open"):  # Python was built for older kernels
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return os.pidfd_open(pid)

else:

    def _handle_of(pid: int) -> int:
        """macOS: a queue of which the process's end is the only event."""
        queue = select.kqueue()
        try:
            how, what = select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
            queue.control([select.kevent(pid, select.KQ_FILTER_PROC, how, what)], 0)
            return os.dup(queue.fileno())
        finally:
            queue.close()


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
