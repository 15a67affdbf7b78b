"""Readers of a program's reply: in its transcript, to the byte, or on its screen; and errors it reports."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from podium.agents.contract.messages import read_messages
from podium.agents.outcome import is_overflow, plain_line, reset_time
from podium.agents.tui.adapter import TranscriptEntry, TuiTimings, Written
from podium.agents.tui.control import Control
from podium.agents.tui.delivery import OutboundMessage
from podium.agents.tui.screen import history, history_size
from podium.agents.tui.screen_watch import LOOK_SECONDS, Sight
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    ContextOverflow,
    PodiumError,
    RateLimited,
)
from podium.core.model import Json
from podium.core.turns import TAG, AwaitedMessage, MessageBlock, ParsedBlocks, ReadFrom, block_of
from podium.platform.safe_open import open_plain
from podium.ports import Clock, HookDoor, Transcript

_LIMITED = re.compile(r"\b429\b|rate.?limit|usage limit|quota|too many requests", re.IGNORECASE)
_NOT_LOGGED_IN = re.compile(
    r"\b401\b|invalid (api )?key|not logged in|please (run )?/?log ?in|unauthori[sz]ed",
    re.IGNORECASE,
)


def error_of(who: str, message: str, now: datetime) -> PodiumError:
    """The error of the tree for what it says. Programs on terminals give a provider's answer in words alone."""
    reason = plain_line(message) or "no reason given"
    if is_overflow(message):
        return ContextOverflow(f"the conversation of {who} is too long: {reason}; start a new one")
    if _LIMITED.search(message):
        return RateLimited(f"{who} is rate-limited: {reason}", reset_time(message, now))
    if _NOT_LOGGED_IN.search(message):
        return AgentNotLoggedIn(f"{who} is not logged in: {reason}; log in with its own command")
    return AgentLost(f"{who} ended its turn without an answer: {reason}; retry the turn")


_CLOSING = f"/{TAG}".encode()
_BLOCK_BYTES = 1 << 14
"""Small, for what is written at once is, and a large buffer costs more than the reading."""


class StreamGate:
    """Follows the file that a pane's output is kept in. Only a hint: programs may draw a tag in pieces.

    Closed by whoever made it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._handle = -1
        self._inode = 0
        self._at = 0
        self._end = b""
        self._find()
        if self._handle >= 0:
            self._at = os.fstat(self._handle).st_size

    def has_opened(self) -> bool:
        """Return whether a closing tag was written since the last time."""
        opened = any_read = False
        while self._handle >= 0 and (read := os.pread(self._handle, _BLOCK_BYTES, self._at)):
            any_read = True
            new = self._end + read
            self._at, self._end = self._at + len(read), new[1 - len(_CLOSING) :]
            opened = opened or _CLOSING in new
            if len(read) < _BLOCK_BYTES:
                break
        # Nothing is added to a file that was put aside. What the new one has may hold the tag.
        return opened if any_read else self._find()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _find(self) -> bool:
        """Have the file open that is there now. True: it is another one than before."""
        try:
            inode = self._file.lstat().st_ino
            if inode == self._inode:
                return False
            self.close()
            self._handle = open_plain(self._file)
        except OSError:
            return False  # it is just being put aside
        self._inode, self._at, self._end = inode, 0, b""
        return True


_BUSY_SECONDS = 10.0
"""A block that has stood so long counts also when its program still looks busy."""
_ANYWAY_SECONDS = 30.0
_GLANCE_SECONDS = 0.002
"""Between two looks when only the end of a turn is waited for."""
_ROUGHLY_LINES = 200
"""A terminal that was resized has its lines broken anew, and keeps more or fewer of them."""

Progress = Callable[[MessageBlock], None]
"""Is called for each message that tells how far the program is."""


@dataclass(frozen=True)
class TurnAnswer:
    """A program's answer to a message."""

    text: str
    read_from: ReadFrom


class ReplyReader(Protocol):
    """Listens for the answer to one message."""

    async def hear(self) -> TurnAnswer | None:
        """The answer, if it is there. Costs next to nothing when there is nothing new."""
        ...

    def stirs(self) -> bool:
        """Is asked at each sign of life of the pane, thousands of times: whether it is worth listening right now."""
        ...

    @property
    def due_at(self) -> float:
        """The event loop's time at which to ask again though nothing changes."""
        ...


@dataclass
class TranscriptReplyReader:
    """Reads what the program writes down: all words after its prompt until the end of its turn."""

    who: str
    written: Written
    message: OutboundMessage
    awaited: AwaitedMessage | None
    sight: Sight
    timings: TuiTimings
    door: HookDoor
    transcript: Transcript
    progress: Progress
    clock: Clock
    due_at: float = math.inf
    _position: Json = field(init=False)
    _prompt: Literal["none", "another", "ours"] = "none"
    """Owner of the present turn. A turn that was interrupted may be written down when the next message is on its way already."""
    _texts: list[str] = field(default_factory=list)
    _is_silent: bool = False
    """Its turn seems to be over without a word."""

    def __post_init__(self) -> None:
        self._position = self.message.mark

    def stirs(self) -> bool:
        return False  # what it writes down tells of itself

    async def hear(self) -> TurnAnswer | None:
        entries, self._position = await asyncio.to_thread(self.written.since, self._position)
        for entry in entries:
            self.transcript.write(json.dumps(asdict(entry), ensure_ascii=False))
            if entry.kind == "used":
                await self.door.settle(entry.use, ok=entry.ok, error="" if entry.ok else entry.text)
            elif self._is_over(entry):
                return TurnAnswer("\n".join(self._texts), "transcript")
        return await self._silence() if self._is_silent else None

    def _is_over(self, entry: TranscriptEntry) -> bool:
        """Return whether the turn is over with this entry. Entries before the prompt are of an earlier turn."""
        if entry.kind == "prompt" and self._prompt != "ours":
            self._prompt = "ours" if self.message.is_taken_as(entry.text) else "another"
            self._texts.clear()
        elif entry.kind == "words" and self._prompt != "none":
            self._texts.append(entry.text)
            self.door.report_progress("text", entry.text)
            if self.awaited is not None:
                _report_progress(self.awaited, read_messages(entry.text), self.progress)
        return entry.kind == "end" and self._prompt != "none" and self._is_end_of_ours(entry)

    def _is_end_of_ours(self, end: TranscriptEntry) -> bool:
        """A prompt that is not known again counts only if its turn brought what was awaited."""
        if self._prompt == "another" and not (end.ok and self._brought_message()):
            self._prompt = "none"
            return False
        if not end.ok:
            raise error_of(self.who, end.text, self.clock.now())
        self._is_silent = not any(text.strip() for text in self._texts)
        return not self._is_silent

    def _brought_message(self) -> bool:
        if self.awaited is None:
            return False
        return self.awaited.find_in(read_messages("\n".join(self._texts))) is not None

    async def _silence(self) -> TurnAnswer | None:
        """An end without a word may be the last turn's, told late: only one that rests has said nothing."""
        await self.sight.look()
        self.due_at = _now() + LOOK_SECONDS
        if not self.sight.rests(self.timings.quiet_seconds):
            return None
        if self.door.waiting_approvals:
            return TurnAnswer("", "transcript")
        raise AgentLost(f"{self.who} ended its turn without a reply; retry the turn")


@dataclass
class ScreenReplyReader:
    """Looks for blocks among what was shown since: only when one may have come, or the screen rests."""

    control: Control
    pane: str
    sight: Sight
    position: Json
    awaited: AwaitedMessage | None
    timings: TuiTimings
    transcript: Transcript
    progress: Progress
    gate: StreamGate | None = None
    """None: nothing tells that a tag went by."""
    _reported: set[str] = field(default_factory=set)
    _candidate: str = ""
    _candidate_at: float = 0.0
    _read_at: float = 0.0
    _opened: bool = False
    """A closing tag went by since the last reading."""

    @property
    def due_at(self) -> float:
        # Where a tag is drawn in pieces, or a screen never rests, it is read now and then all the same.
        anyway = self._read_at + _ANYWAY_SECONDS if self.sight.has_news else math.inf
        later = [self.sight.rests_at(self.timings.quiet_seconds), anyway]
        if self._candidate:
            later.append(self._candidate_at + _BUSY_SECONDS)
        if self._candidate and self.sight.has_news:  # it may have become ready
            later.append(self._read_at + _GLANCE_SECONDS)
        return min((at for at in later if at > self._read_at), default=math.inf)

    async def hear(self) -> TurnAnswer | None:
        if not self._opened and self.due_at > _now() and self._read_at > 0:
            return None
        self._opened = False
        text, blocks = await self._read()
        if self.awaited is None:
            return self._as_answer(text) if self.sight.rests(self.timings.quiet_seconds) else None
        _report_progress(self.awaited, blocks, self._progress_once)
        return self._answer(self.awaited, blocks)

    def stirs(self) -> bool:
        if self.gate is not None and self.gate.has_opened():
            self._opened = True
        return self._opened or bool(self._candidate)

    async def best(self) -> TurnAnswer | None:
        """The block, if it is there when nothing more is waited for. Plain words of a screen are nobody's answer: the echo of the
        prompt and whatever the program shows of itself stand among them."""
        if self.awaited is None:
            return None
        _, blocks = await self._read()
        if self.awaited.find_in(blocks) is None:
            return None
        return self._blocks(self.awaited, blocks)

    async def has_block(self, awaited: AwaitedMessage) -> bool:
        """Return whether the block is there, ready or not."""
        return awaited.find_in((await self._read())[1]) is not None

    def _answer(self, awaited: AwaitedMessage, blocks: ParsedBlocks) -> TurnAnswer | None:
        """The block counts when its program is ready, or has rested: one that works may send a better one."""
        message = awaited.find_in(blocks)
        serialized = "" if message is None else message.model_dump_json()
        if serialized != self._candidate:
            self._candidate, self._candidate_at = serialized, _now()
        if message is None:
            return None
        if self.sight.status == "ready" or self.sight.rests(self.timings.quiet_seconds):
            return self._blocks(awaited, blocks)
        return (
            self._blocks(awaited, blocks) if _now() >= self._candidate_at + _BUSY_SECONDS else None
        )

    def _blocks(self, awaited: AwaitedMessage, blocks: ParsedBlocks) -> TurnAnswer:
        ours = [message for message in blocks.messages if not awaited.problem_of(message)]
        text = "\n\n".join(map(block_of, ours))
        self.transcript.write(text)
        return TurnAnswer(text, "screen")

    def _as_answer(self, text: str) -> TurnAnswer:
        self.transcript.write(text)
        return TurnAnswer(text, "screen")

    def _progress_once(self, message: MessageBlock) -> None:
        """A screen shows the same block again and again."""
        if message.body not in self._reported:
            self._reported.add(message.body)
            self.progress(message)

    async def _read(self) -> tuple[str, ParsedBlocks]:
        """Read what has been shown since the message; and a little more, unless that has what is awaited."""
        self._read_at = _now()
        size = await history_size(self.control, self.pane)
        before = self.position if isinstance(self.position, int) else 0
        new = size - before if size >= before else size
        if self.awaited is not None:
            text, blocks = await self._last_lines(new)
            if new == size or self.awaited.find_in(blocks) is not None:
                return text, blocks
        return await self._last_lines(min(size, new + _ROUGHLY_LINES))

    async def _last_lines(self, lines: int) -> tuple[str, ParsedBlocks]:
        """First what was said, then what the program is at: one that was ready before may have begun to say more."""
        # Over one connection they are asked in this order, and answered without waiting in between.
        rows, screen = await asyncio.gather(
            history(self.control, self.pane, lines), self.sight.look()
        )
        text = "\n".join(rows)
        return text, read_messages(text, columns=screen.columns)


def _report_progress(awaited: AwaitedMessage, blocks: ParsedBlocks, progress: Progress) -> None:
    for message in blocks.messages:
        if awaited.is_progress(message):
            progress(message)


def _now() -> float:
    return asyncio.get_running_loop().time()
