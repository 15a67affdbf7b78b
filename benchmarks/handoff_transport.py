"""Our transport alone: woken by the kernel, the block read where it stands, and pasted into the other program.

Where a program writes its conversation down, as the terminal AIs do, it is read there; else off its screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.handoff_harness import Carrier, Ends
from podium.agents.contract.messages import read_messages
from podium.agents.tui import Activity, Panes, Program, TerminalSettings, TmuxServer, history
from podium.agents.tui.activity import watch_folder
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record
from podium.agents.tui.panes import loading, pasting
from podium.agents.tui.reply_reader import StreamGate
from podium.core.model import Json
from podium.core.turns import MessageBlock, block_of
from podium.sandbox import ProcessLauncher, end_left_server


@dataclass
class Line:
    """Both programs on a server of their own."""

    server: TmuxServer
    activity: Activity
    mouth: str
    ear: str
    transcripts: Path
    carried: str = ""

    async def carry(self, messages: tuple[MessageBlock, ...]) -> None:
        """Paste the newest block, unless that was done."""
        if not messages or messages[-1].id == self.carried:
            return
        self.carried = messages[-1].id
        paste = f"{loading('handoff', block_of(messages[-1]))} ; {pasting('handoff', self.ear)}"
        await self.server.control.run(f"{paste} ; send-keys -t {self.ear} C-m")


Carry = Callable[[Line], Coroutine[None, None, None]]


async def by_screen(folder: Path) -> Carrier:
    return await _transport(folder, "screen", _off_the_screen)


async def by_transcript(folder: Path) -> Carrier:
    return await _transport(folder, "transcript", _from_the_transcript)


async def _transport(folder: Path, name: str, carry: Carry) -> Carrier:
    settings = TerminalSettings(socket=folder / f"{name}.tmux", folder=folder / name)
    server = TmuxServer(ProcessLauncher(), settings, end_left_server)
    await server.come_up()
    activity = Activity(server.control, settings.folder / "activity")
    ends = Ends(folder, name)
    ends.open()
    panes = Panes(server.control, settings)
    mouth, ear = [
        await panes.open(Program(name=end, argv=ends.command(end), cwd=folder))
        for end in ("mouth", "ear")
    ]
    await activity.follow(mouth)
    await ends.are_up()
    line = Line(server, activity, mouth, ear, ends.transcripts)
    carrying = asyncio.get_running_loop().create_task(carry(line))
    await asyncio.sleep(0)  # until it listens

    async def stop() -> None:
        carrying.cancel()
        await asyncio.wait({carrying})
        activity.close()
        ends.close()
        await server.departing()

    return Carrier(name, ends.handoff, stop)


async def _off_the_screen(line: Line) -> None:
    gate = StreamGate(line.activity.file(line.mouth))
    heartbeats = 0
    while True:
        await line.activity.beyond(line.mouth, heartbeats, float("inf"))
        heartbeats = line.activity.signs(line.mouth)
        if gate.has_opened():
            shown = "\n".join(await history(line.server.control, line.mouth, 0))
            columns = line.server.settings.columns
            await line.carry(read_messages(shown, columns=columns).messages)


@dataclass
class _Tail:
    """Transcript of the sending end (`mouth`), and an event that is set when it was written to."""

    line: Line
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    mark: Json = None

    async def follow(self) -> None:
        kept = NewestFile(self.line.transcripts, "*.jsonl")
        tail = JsonlTail(kept, _entries, lambda file: "")
        self.end_position = tail.end_position()
        watch = watch_folder(self.line.transcripts, lambda file: self.rung.set())
        try:
            while True:
                await self.rung.wait()
                self.rung.clear()
                output, self.end_position = tail.since(self.end_position)
                for item in output:
                    await self.line.carry(read_messages(item.text).messages)
        finally:
            watch.stop()


async def _from_the_transcript(line: Line) -> None:
    await _Tail(line).follow()


def _entries(record: Record) -> list[TranscriptEntry]:
    return [TranscriptEntry("words", str(record.get("text", "")))]
