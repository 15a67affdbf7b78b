"""A pair of talking fake TUIs, as one Podium holds it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from podium.agents.contract.messages import read_messages
from podium.agents.deps import AgentOptions
from podium.agents.tui import TerminalSettings
from podium.agents.tui.adapter import (
    Launch,
    ProgramContext,
    TranscriptEntry,
    TuiDeps,
    TuiTimings,
    Written,
)
from podium.agents.tui.generic import GenericTui
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record
from podium.agents.tui.pair import TerminalPair, TuiAgent
from podium.core.keyboards import KeyboardHold
from podium.core.model import Json
from podium.core.processes import ProcessSpec
from podium.core.turns import AwaitedMessage, MessageBlock, Reply, Side, Turn, TurnLimits
from podium.ports import Clock
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server
from podium.testing import FakeConfinementProvider, FakeHookDoors, FixedClock, MemoryTranscripts
from podium.testing.fake_tuis import ScriptedAnswers, happened, tui_command

QUICK = TuiTimings(start_seconds=60.0, quiet_seconds=0.3)

MANNERS = {"unbracketed": "reference", "echo": "lines"}


class CountingLauncher(ProcessLauncher):
    """Counts the programs that were to be started on terminals."""

    def __init__(self) -> None:
        super().__init__(LauncherSettings(grace_seconds=1.0, linger_seconds=0.02))
        self.on_terminals = 0

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        self.on_terminals += 1
        return await super().on_terminal(spawn)


@dataclass
class Podium:
    """One Podium's hold on a pair whose programs' records lie in `root`."""

    root: Path
    timings: TuiTimings = QUICK
    columns: int = 100
    doors: FakeHookDoors = field(default_factory=FakeHookDoors)
    transcripts: MemoryTranscripts = field(default_factory=MemoryTranscripts)
    launcher: CountingLauncher = field(default_factory=CountingLauncher)
    clock: Clock = field(default_factory=FixedClock)
    lapses: list[KeyboardHold] = field(default_factory=list)

    def __post_init__(self) -> None:
        deps = TuiDeps(
            launcher=self.launcher,
            confinement_provider=FakeConfinementProvider(),
            doors=self.doors,
            transcripts=self.transcripts,
            clock=self.clock,
            hook_command=("true",),
            user_home=self.root,
            environ={},
            end_left=end_left_server,
            timings=self.timings,
            keyboard_lapsed=self._lapsed,
        )
        settings = TerminalSettings(
            socket=self.root / "s", folder=self.root / "own", columns=self.columns, rows=30
        )
        self.pair = TerminalPair(deps, settings)

    async def _lapsed(self, run_id: str, side: str, hold: KeyboardHold) -> None:
        self.lapses.append(hold)

    def seat(
        self,
        kind: str,
        *ways: str,
        name: str = "planner",
        primer: str = "",
        bodies: Sequence[str] = ("1. look\n2. mend",),
        options: dict[str, Json] | None = None,
        writes: bool = False,
        **answers: object,
    ) -> TuiAgent:
        """A fake TUI on a side, seen by its screen; with `writes` it also writes down what it says."""
        transcript = self.root / f"{name}.said" / "conversation.jsonl"
        transcript.parent.mkdir(exist_ok=True)
        kept = {"transcript": str(transcript)} if writes else {}
        script = ScriptedAnswers(ways=ways or ("plain",), bodies=tuple(bodies), **kept, **answers)  # type: ignore[arg-type]
        file = script.write_to(self.root / f"{name}.answers.json")
        usual: dict[str, Json] = {"manner": MANNERS.get(kind, "paste"), "enter_seconds": 0.3}
        own = {**usual, "paint_seconds": 60.0, "ready_seconds": 60.0, **(options or {})}
        settings = AgentOptions(
            name=f"zoo-{name}", command=tui_command(kind, self.record(name), file), options=own
        )
        adapter = WritingTui(settings, transcript) if writes else GenericTui(settings)
        return self.pair.side(name, adapter, settings, self.root, primer)

    def record(self, name: str = "planner") -> Path:
        return self.root / f"{name}.jsonl"

    def taken(self, name: str = "planner") -> list[str]:
        """Return the messages that the program took, each by its beginning."""
        return [event.text for event in happened(self.record(name)) if event.what == "took"]

    def deaths(self, name: str = "planner") -> int:
        return sum(event.what == "died" for event in happened(self.record(name)))


class WritingTui(GenericTui):
    """A fake TUI that writes its conversation down, and goes on with it when it is started again."""

    def __init__(self, options: AgentOptions, transcript: Path) -> None:
        super().__init__(options)
        self._transcript = transcript

    def launch(self, place: ProgramContext, session: str | None) -> Launch:
        return replace(super().launch(place, session), session="zoo")

    def written(self, place: ProgramContext, session: str) -> Written | None:
        kept = NewestFile(self._transcript.parent, self._transcript.name)
        return JsonlTail(kept, _entries, lambda file: "" if file is None else "zoo")


def _entries(record: Record) -> list[TranscriptEntry]:
    role, text = record.get("role"), str(record.get("text", ""))
    if role == "end":
        return [TranscriptEntry("end", ok=True)]
    return [TranscriptEntry("prompt" if role == "user" else "words", text)]


def a_turn(
    number: int = 1,
    *,
    sender: Side = "PLANNER",
    seconds: float | None = 90.0,
    longest_seconds: float = 600.0,
    words: str = "Mend the roof.",
) -> Turn:
    awaited = AwaitedMessage(
        sender=sender,
        types=("plan",) if sender == "PLANNER" else ("result",),
        task=f"T{number}",
        nonce="ab12cd34",
        longest_seconds=longest_seconds,
    )
    to, kind = ("EXECUTER", "plan") if sender == "PLANNER" else ("PLANNER", "result")
    prompt = (
        f'{words}\nID = "{awaited.task}" + "-" + "ab12" + "cd34"\n'
        f'[[POLI:MSG {{"to":"{to}","type":"{kind}","id":"<ID>"}}]]\n[[/POLI:MSG]]'
    )
    return Turn(
        run_id="run_1",
        step_key=f"turn-{number}",
        role=sender.lower(),
        prompt=prompt,
        workspace="/",
        limits=TurnLimits(seconds=seconds),
        awaits=awaited,
    )


def message_in(reply: Reply, turn: Turn) -> MessageBlock | None:
    assert turn.awaits is not None
    return turn.awaits.find_in(read_messages(reply.text))


@asynccontextmanager
async def on_stage(root: Path, **fields: object) -> AsyncIterator[Podium]:
    """A Podium, and no trace of its pair afterwards."""
    podium = Podium(root, **fields)  # type: ignore[arg-type]
    try:
        yield podium
    finally:
        await podium.pair.depart()


async def kill_program(podium: Podium, name: str = "planner") -> None:
    (state,) = [item for item in await podium.pair.states() if item.name == name]
    os.kill(state.pid, signal.SIGKILL)


def quick(**fields: float) -> TuiTimings:
    return replace(QUICK, **fields)  # type: ignore[arg-type]
