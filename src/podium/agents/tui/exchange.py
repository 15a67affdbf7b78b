"""One turn with a program on a terminal: its message is taken once, its answer awaited and found, whoever dies in between."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile

from podium.agents.contract.messages import read_messages
from podium.agents.tui.activity import Activity, ChangeSignal
from podium.agents.tui.adapter import TranscriptEntry, TuiDeps, TuiTimings, Written
from podium.agents.tui.control import (
    Control,
    LineLost,
    NotListening,
    PaneGone,
    ProgramEnded,
    ServerGone,
)
from podium.agents.tui.delivery import OutboundMessage, owner_of
from podium.agents.tui.reply_reader import (
    ReplyReader,
    ScreenReplyReader,
    StreamGate,
    TranscriptReplyReader,
    TurnAnswer,
)
from podium.agents.tui.screen_watch import Sight
from podium.agents.tui.side import INTERRUPT_SECONDS, Side
from podium.core.decisions import digest_of
from podium.core.errors import NeedsHuman, PodiumError, TimedOut
from podium.core.keyboards import KeyboardHold
from podium.core.model import Json
from podium.core.turns import MessageBlock, Turn
from podium.ports import HookDoor, Transcript

_MAX_LINES_LOST = 5
_TAKEN_SECONDS = 0.25
"""Seconds between checks for a returned keyboard: nothing reports that."""

Nudge = Callable[[], Awaitable[None]]


class TurnTime:
    """The time limit of a turn. Progress begins it anew, up to a longest time."""

    def __init__(self, turn: Turn, held_seconds: float = 0.0) -> None:
        """`stood_seconds`: how long people had had the keyboard when it began."""
        self._seconds = math.inf if turn.limits.seconds is None else turn.limits.seconds
        longest = math.inf if turn.awaits is None else turn.awaits.longest_seconds
        self._first = self._began = _now()
        self._last = self._began + longest
        self._held_seconds = held_seconds

    def stand_still(self, held_seconds: float) -> None:
        """Leave out what time people have had the keyboard by now."""
        more = max(held_seconds - self._held_seconds, 0.0)
        self._held_seconds += more
        self._first, self._last = self._first + more, self._last + more
        # What begins anew while a person has the keyboard has not stood for all of that.
        self._began = min(self._began + more, _now())

    def begin_anew(self) -> None:
        self._began = _now()

    @property
    def passed_seconds(self) -> float:
        return _now() - self._first

    @property
    def ends_at(self) -> float:
        return min(self._began + self._seconds, self._last)

    def part_at(self, part: float) -> float:
        """Return when so much of the present time will have passed."""
        return self._began + (self.ends_at - self._began) * part


@dataclass
class Listener:
    """Waits by one ear; looks at the screen for what the ear cannot hear: an end, a question, a long rest."""

    who: str
    awaits: str
    """The awaited answer, as text."""
    reader: ReplyReader
    screen_reader: ScreenReplyReader
    """The same ear, or what else there is when the ear hears nothing though the program rests."""
    sight: Sight
    signal: ChangeSignal
    time: TurnTime
    timings: TuiTimings
    nudge: Nudge
    keyboard: Callable[[], Awaitable[tuple[bool, float]]]
    """Returns whether a person has it, and how long people have had it by now."""
    watch: Callable[[], None]
    """Has the bell ring for folders that have come into being."""
    _nudged: bool = False

    async def listen(self) -> TurnAnswer:
        """The answer. Raises `TimedOut`, `NeedsHuman` for a question, `ProgramEnded` when the program is no more."""
        lost = 0
        while True:
            try:
                if answer := await self._listen_once():
                    return answer
            except LineLost:
                lost += 1
                if lost > _MAX_LINES_LOST:
                    raise

    async def _listen_once(self) -> TurnAnswer | None:
        self.watch()
        if answer := await self.reader.hear():
            return answer
        if self.sight.due_at <= _now():
            await self.sight.look()
        if (self.sight.held or self._acts_at() <= _now()) and await self._is_taken():
            await self.signal.wait(min(self.reader.due_at - _now(), _TAKEN_SECONDS))
            return None
        if self.sight.asks_at <= _now():
            await self.sight.refuse_asking(self.who)
        if _now() >= self.time.ends_at:
            return await self._last_chance()
        if self._nudge_at() <= _now() and (answer := await self._remind()):
            return answer
        await self.signal.wait(self._next_at() - _now())
        return None

    async def _is_taken(self) -> bool:
        """Return whether a person has the keyboard: then nothing is done but to listen, and the turn's time stands still."""
        taken, held_seconds = await self.keyboard()
        self.time.stand_still(held_seconds)
        return taken

    async def _remind(self) -> TurnAnswer | None:
        """Only one that rests: some throw an answer away that they are at when something is typed."""
        await self.sight.refuse_asking(self.who)
        if not self.sight.rests(self.timings.quiet_seconds):
            return None
        if answer := await self.screen_reader.best():
            return answer
        self._nudged = True
        await self.nudge()
        return None

    async def _last_chance(self) -> TurnAnswer:
        if answer := await self.screen_reader.best():
            return answer
        reminded = ", also after a reminder" if self._nudged else ""
        raise TimedOut(
            f"{self.who} gave no {self.awaits} within {self.time.passed_seconds:.0f} s{reminded}, and is "
            f"{self.sight.status}; check its pane, then retry the turn or give it more time"
        )

    def _next_at(self) -> float:
        """Return when something is to be done though nothing changes."""
        return min(self.reader.due_at, self.sight.due_at, self._acts_at())

    def _acts_at(self) -> float:
        """Return when more is to be done than to listen and to look."""
        return min(self.sight.asks_at, self.time.ends_at, self._nudge_at())

    def _nudge_at(self) -> float:
        if self._nudged:
            return math.inf
        rests_at = self.sight.rests_at(self.timings.quiet_seconds)
        return max(self.time.part_at(self.timings.nudge_at), rests_at)


def _now() -> float:
    return asyncio.get_running_loop().time()


GO_ON = (
    "You were interrupted by a restart in the middle of my last message. Continue where you left off, and answer it as it "
    "asks."
)


@dataclass
class Exchange:
    """The turn, as one Podium holds it. Its letters tell the next one how far it came."""

    deps: TuiDeps
    side: Side
    control: Control
    activity: Activity
    turn: Turn
    door: HookDoor
    transcript: Transcript
    asked: bool = False
    """Its message was handed over, or was about to be."""
    _key: str = ""
    """Of the letter that the turn is at."""
    _time: TurnTime = field(init=False)

    def __post_init__(self) -> None:
        self._time = TurnTime(self.turn)

    @property
    def key(self) -> str:
        turn = self.turn
        return digest_of([turn.run_id, turn.step_key, turn.asking, turn.prompt])

    async def hold(self) -> TurnAnswer:
        """The answer. A program that died meanwhile raises `ProgramEnded`; hold it again when it is up.

        Cancelled, or out of time, it interrupts the program, which is ready for another message then.
        """
        try:
            message = await self._sent()
            return await self._answer(message)
        except (asyncio.CancelledError, TimedOut):
            with suppress(PodiumError, TimeoutError):
                await self._stop()
            raise

    async def give_up(self) -> None:
        """Nobody waits for the answer any more: asked again, the message is sent again. Survives a crash."""
        outbound = self.side.outbound
        if message := outbound.read(owner_of(self._key)):
            await asyncio.to_thread(outbound.keep, message.model_copy(update={"given_up": True}))

    async def _sent(self) -> OutboundMessage:
        """The letter that the program works on, sent if it was not."""
        attempt = 1
        while True:
            self._key = f"{self.key} {attempt}"
            message = self.side.outbound.read(owner_of(self._key))
            if message is None or not self._is_past(message):
                return await self._deliver(self._key, self.turn.prompt)
            if await self._can_be_answered(message):
                return message
            attempt += 1

    def _is_past(self, message: OutboundMessage) -> bool:
        """Return whether it was given up, or its program is not the one of today."""
        return message.given_up or message.life != self.side.record().lives

    async def _can_be_answered(self, message: OutboundMessage) -> bool:
        """Return whether an earlier message has its answer after all, or its conversation goes on with it."""
        written = self.side.written
        if written is None:
            return await self._is_on_screen(message)
        entries, _ = await asyncio.to_thread(written.since, message.mark)
        after = list(dropwhile(lambda entry: not _took(entry, message), entries))
        if message.given_up or any(entry.kind == "end" for entry in after):
            return self._is_answered_by(after)
        if after:
            await self._deliver(f"{message.owner} goes on {self.side.record().lives}", GO_ON)
        return bool(after)

    def _is_answered_by(self, entries: Sequence[TranscriptEntry]) -> bool:
        """Return whether a turn is over and brought what was awaited."""
        turn = list(takewhile(lambda entry: entry.kind != "end", entries))
        text = "\n".join(entry.text for entry in turn if entry.kind == "words")
        if len(turn) == len(entries) or not entries[len(turn)].ok:
            return False
        awaited = self.turn.awaits
        if awaited is None or awaited.or_words:
            return bool(text.strip())
        return awaited.find_in(read_messages(text)) is not None

    async def _is_on_screen(self, message: OutboundMessage) -> bool:
        """Return whether the screen has the block. One that was begun anew has nothing of what was before."""
        awaited = self.turn.awaits
        if awaited is None or message.life != self.side.record().lives:
            return False
        return await self._screen_reader(message.mark).has_block(awaited)

    async def _deliver(self, key: str, text: str) -> OutboundMessage:
        """A program that has it already may be at work on it; any other has to be ready."""

        async def send() -> OutboundMessage:
            if not await self.side.has(key):
                await self.side.be_ready(self.deps.timings.start_seconds)
            self.asked = True
            return await self.side.send(key, text)

        return await self.side.by_ourselves(send, self.lapsed)

    async def lapsed(self, hold: KeyboardHold) -> None:
        """A person's time with the keyboard was over."""
        await self.deps.keyboard_lapsed(self.turn.run_id, self.side.name, hold)

    async def _answer(self, message: OutboundMessage) -> TurnAnswer:
        """The answer to the letter. Unless its turn may go on, whatever else ends it gives the letter up."""
        # From here on: how long it took until the program was up and had its message is not its fault.
        self._time = TurnTime(self.turn, await self._held_seconds())
        try:
            with closing(StreamGate(self.activity.file(self.side.pane))) as gate:
                return await self._listen(message, gate)
        except (NeedsHuman, LineLost, PaneGone, ProgramEnded, ServerGone):
            raise
        except PodiumError:
            await self.give_up()
            raise

    async def _held_seconds(self) -> float:
        try:
            return (await self._keyboard())[1]
        except LineLost:  # the next question makes a new connection
            return (await self._keyboard())[1]

    async def _keyboard(self) -> tuple[bool, float]:
        state = await self.side.keyboard.settled(self.lapsed)
        return state.hold is not None, state.held_seconds(self.deps.clock.now())

    async def _listen(self, message: OutboundMessage, gate: StreamGate) -> TurnAnswer:
        side, sight, written = self.side, self.side.sight, self.side.written
        screen = self._screen_reader(message.mark if written is None else None, gate)
        reader = screen if written is None else self._transcript_reader(written, message)

        def is_news() -> bool:
            return reader.stirs() or sight.has_first_news or sight.has_end

        with ChangeSignal(self.activity, side.pane, is_news) as signal:

            def watch() -> None:
                if written is not None:
                    signal.watch(written.folders())

            listener = Listener(
                side.who,
                _awaited(self.turn),
                reader,
                screen,
                sight,
                signal,
                self._time,
                self.deps.timings,
                lambda: self._nudge(message),
                self._keyboard,
                watch,
            )
            return await listener.listen()

    def _transcript_reader(
        self, written: Written, message: OutboundMessage
    ) -> TranscriptReplyReader:
        return TranscriptReplyReader(
            self.side.who,
            written,
            message,
            self.turn.awaits,
            self.side.sight,
            self.deps.timings,
            self.door,
            self.transcript,
            self._progressed,
            self.deps.clock,
        )

    def _screen_reader(self, position: Json, gate: StreamGate | None = None) -> ScreenReplyReader:
        return ScreenReplyReader(
            self.control,
            self.side.pane,
            self.side.sight,
            position,
            self.turn.awaits,
            self.deps.timings,
            self.transcript,
            self._progressed,
            gate,
        )

    def _progressed(self, message: MessageBlock) -> None:
        self.door.report_progress("note", message.body)
        self._time.begin_anew()

    async def _nudge(self, message: OutboundMessage) -> None:
        self.door.report_progress("note", f"reminded {self.side.name} to answer")
        with suppress(NotListening):  # it may have begun to say something
            await self.side.send(f"{message.owner} nudge", self.deps.timings.nudge_text)

    async def _stop(self) -> None:
        """A message that is on its way is let through first: what stands in an input would be in everybody's way."""
        if not self.asked:
            return
        await self.give_up()
        async with asyncio.timeout(INTERRUPT_SECONDS):
            if await self.side.has(self._key):
                await self.side.send(self._key, self.turn.prompt)
        await self.side.interrupt()


def _took(entry: TranscriptEntry, message: OutboundMessage) -> bool:
    return entry.kind == "prompt" and message.is_taken_as(entry.text)


def _awaited(turn: Turn) -> str:
    if turn.awaits is None:
        return "answer"
    return f"{' or '.join(turn.awaits.types)} block of task {turn.awaits.task}"
