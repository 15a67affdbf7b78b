"""A real tmux server on a socket of its own, and eyes for the fake TUIs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from podium.agents.tui import (
    Activity,
    Composer,
    Control,
    Injector,
    Manner,
    Panes,
    Patience,
    Program,
    TerminalScreen,
    TerminalSettings,
    TmuxServer,
    look,
)
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until
from podium.testing.fake_tuis import tui_command
from podium.testing.fake_tuis.composer import MAX_INPUT_LINES, PROMPT, STAND_IN

SURE_LENGTH = 60

QUICK = Patience(settle_seconds=0.01, enter_seconds=0.3, ready_seconds=30.0, paint_seconds=30.0)


@dataclass
class Harness:
    """One server with what belongs to it, as one Podium holds it."""

    server: TmuxServer
    root: Path
    activity: Activity = field(init=False)
    panes: Panes = field(init=False)

    def __post_init__(self) -> None:
        self.activity = Activity(self.control, self.server.settings.folder / "activity")
        self.panes = Panes(self.control, self.server.settings)

    @property
    def control(self) -> Control:
        return self.server.control

    async def open(self, kind: str, name: str = "planner") -> str:
        """A pane with a fake TUI that has drawn its composer."""
        pane = await self.panes.open(self.program(kind, name))
        await self.activity.follow(pane)
        return pane

    def program(self, kind: str, name: str = "planner") -> Program:
        argv = tui_command(kind, self.record(name))
        return Program(name=name, argv=argv, cwd=self.root)

    def injector(self, pane: str, manner: Manner = "paste", patience: Patience = QUICK) -> Injector:
        messages = self.server.settings.folder / "messages"
        return Injector(self.control, self.activity, pane, FakeTuiEyes(manner), messages, patience)

    def record(self, name: str = "planner") -> Path:
        return self.root / f"{name}.jsonl"

    def taken(self, name: str = "planner") -> list[str]:
        """The messages that the program took."""
        record = self.record(name)
        return (
            [json.loads(line) for line in record.read_text().splitlines()]
            if record.exists()
            else []
        )

    async def shows(self, pane: str, text: str) -> TerminalScreen:
        """The screen once it shows this."""

        async def is_shown() -> bool:
            return text in (await look(self.control, pane)).text

        await retry_until(is_shown)
        return await look(self.control, pane)

    async def hides(self, pane: str, text: str) -> None:
        """Return once the screen no longer shows this."""

        async def is_gone() -> bool:
            return text not in (await look(self.control, pane)).text

        await retry_until(is_gone)


@dataclass(frozen=True)
class FakeTuiEyes:
    """Reads the composers of fake TUIs."""

    manner: Manner = "paste"

    def composer(self, screen: TerminalScreen, words: str) -> Composer:
        prompts = [at for at, line in enumerate(screen.lines) if line.startswith(PROMPT.strip())]
        if not prompts:
            return "unseen"
        shown = screen.lines[prompts[-1]].removeprefix(PROMPT.strip()).strip()
        if not shown:
            return "empty"
        return "ours" if _is_beginning(shown, _as_shown(words).strip()) else "other"


def _is_beginning(shown: str, whole: str) -> bool:
    """Programs break lines: a good part of it will do."""
    return whole.startswith(shown) and len(shown) >= min(len(whole), SURE_LENGTH)


def _as_shown(words: str) -> str:
    lines = words.split("\n")
    return STAND_IN.format(lines=len(lines)) if len(lines) > MAX_INPUT_LINES else lines[0]


def short_folder() -> tempfile.TemporaryDirectory[str]:
    """A socket's path must be short, and pytest's folders are not."""
    return tempfile.TemporaryDirectory(prefix="pt-", dir="/tmp" if os.path.isdir("/tmp") else None)


def a_server(root: Path, **fields: object) -> TmuxServer:
    settings = TerminalSettings.model_validate(
        {"socket": root / "s", "folder": root / "own", "columns": 100, "rows": 30, **fields}
    )
    launcher = ProcessLauncher(LauncherSettings(grace_seconds=1.0, linger_seconds=0.02))
    return TmuxServer(launcher, settings, end_left_server)


@asynccontextmanager
async def housed(root: Path, **fields: object) -> AsyncIterator[Harness]:
    """A server that is up, and gone with all it started afterwards."""
    harness = Harness(a_server(root, **fields), root)
    await harness.server.come_up()
    try:
        yield harness
    finally:
        harness.activity.close()
        await harness.server.departing()


async def client_of(harness: Harness) -> int:
    """The pid of the only client."""
    (pid,) = await harness.control.ask("list-clients -F '#{client_pid}'")
    return int(pid)


def is_gone(pid: int) -> bool:
    """Also when whoever adopted it has not collected it yet."""
    entry = entry_of(pid)
    return entry is None or entry.is_zombie
