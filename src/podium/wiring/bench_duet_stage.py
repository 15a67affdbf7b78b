"""Programs of the zoo as a pair, on a real tmux server of their own: the stage of `podium bench duet`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.agents.kit import AgentOptions
from podium.agents.tui import GenericTui, TerminalPair, TerminalSettings, TuiAgent, TuiKit
from podium.agents.tui.adapting import Terms
from podium.domain.messages import Side
from podium.domain.model import Json
from podium.flows.duet import primer
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server
from podium.testing import FakeEnclosures, FakeHookDoors, MemoryTranscripts
from podium.testing.tui_zoo import Answers, Happened, happened, zoo_command
from podium.testing.tui_zoo.answers import beside
from podium.wiring.clock import SystemClock

MANNERS = {"unbracketed": "reference", "echo": "lines"}
"""How each kind takes words, where not by a bracketed paste."""
TERMS = Terms(quiet_seconds=0.5)


@dataclass
class ZooSeat:
    """A program of the zoo on one side."""

    side: Side
    kind: str
    record: Path
    agent: TuiAgent

    @property
    def name(self) -> str:
        return self.side.lower()

    def happened(self) -> list[Happened]:
        """What the program says of itself: the truth."""
        return happened(self.record)

    @property
    def rests(self) -> bool:
        """Whether it is at nothing, as it says itself."""
        states = [each.text for each in self.happened() if each.what == "state"]
        return states[-1:] == ["ready"]

    def halves(self) -> int:
        """How often it stopped in the middle of a block."""
        file = Path(beside(str(self.record)))
        return file.read_bytes().count(b'"what": "half"') if file.exists() else 0


class ZooPair:
    """One or two programs, each answering in its own way. Made by `zoo_pair`."""

    def __init__(self, folder: Path, terms: Terms = TERMS) -> None:
        """`folder` is private; its path must be short, since it holds a socket."""
        self._folder = folder
        kit = TuiKit(
            launcher=ProcessLauncher(LauncherSettings(grace_seconds=1.0, linger_seconds=0.02)),
            enclosures=FakeEnclosures(),
            doors=FakeHookDoors(),
            transcripts=MemoryTranscripts(),
            clock=SystemClock(),
            hook_command=("true",),
            user_home=folder,
            environ={},
            end_left=end_left_server,
            terms=terms,
        )
        settings = TerminalSettings(socket=folder / "s", folder=folder / "own")
        self.terminals = TerminalPair(kit, settings)
        self.seats: list[ZooSeat] = []

    def seat(self, side: Side, kind: str, answers: Answers, **own: Json) -> ZooSeat:
        """`own` are options of the generic adapter."""
        name = side.lower()
        record = self._folder / f"{name}.jsonl"
        kept = answers.kept_in(self._folder / f"{name}.answers.json")
        options = AgentOptions(
            name=kind,
            command=zoo_command(kind, record, kept),
            options={"manner": MANNERS.get(kind, "paste"), **own},
        )
        part = primer(side, on_screen=True)
        adapter = GenericTui(options)
        agent = self.terminals.side(name, adapter, options, self._folder, part)
        self.seats.append(ZooSeat(side, kind, record, agent))
        return self.seats[-1]


@asynccontextmanager
async def zoo_pair(folder: Path, terms: Terms = TERMS) -> AsyncIterator[ZooPair]:
    """A pair in a new folder, and no trace of its server afterwards. What its programs recorded stays."""
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    pair = ZooPair(folder, terms)
    try:
        yield pair
    finally:
        await pair.terminals.depart()
