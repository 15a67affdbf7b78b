"""What a side's program is started with: its private folders, its fence, and the way to the door of each turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from podium.agents.confined import Needs, fenced
from podium.agents.kit import AgentOptions
from podium.agents.tui.adapting import Adapter, Place
from podium.agents.tui.kit import TuiKit
from podium.agents.tui.panes import Program
from podium.domain.launching import Spawn

DOOR_FILE = "PODIUM_DOOR_FILE"
"""Variable by which a CLI's hook finds the door of whichever turn is on."""
_FOLDERS = ("home", "tmp", "door", "messages", "letters")


@dataclass(frozen=True)
class Seating:
    """Who sits on a side, and what it is told first."""

    name: str
    adapter: Adapter
    options: AgentOptions
    cwd: Path
    primer: str = ""


@dataclass(frozen=True)
class Quarters:
    """The folder of one side, private, for as long as the pair is up."""

    folder: Path
    kit: TuiKit
    seating: Seating

    @property
    def door_file(self) -> Path:
        return self.folder / "door" / "door.json"

    @property
    def messages(self) -> Path:
        """For what is handed over as files."""
        return self.folder / "messages"

    def place(self, *, confined: bool = False) -> Place:
        return Place(
            name=self.seating.name,
            cwd=self.seating.cwd,
            home=self.folder / "home",
            temporary=self.folder / "tmp",
            options=self.seating.options,
            hook_command=self.kit.hook_command,
            user_home=self.kit.user_home,
            confined=confined,
        )

    def lay_out(self) -> None:
        """Make its folders. Harmless when they are there."""
        # One by one: what `mkdir` makes above a folder is open to others.
        for folder in (self.folder.parent, self.folder, *(self.folder / name for name in _FOLDERS)):
            folder.mkdir(exist_ok=True, mode=0o700)

    async def program(self, session: str) -> tuple[Program, str]:
        """The program for its pane, in this conversation or in a new one, and what the conversation is called."""
        seating, kit = self.seating, self.kit
        fence = await kit.enclosures.confinement(str(seating.cwd))
        place = self.place(confined=fence.kind != "none")
        launch = await asyncio.to_thread(seating.adapter.launch, place, session or None)
        spawn = Spawn(
            argv=launch.argv,
            cwd=str(seating.cwd),
            env={**launch.env, DOOR_FILE: str(self.door_file)},
            confinement=fenced(fence, self._needs(launch.needs, place)),
        )
        argv = await kit.launcher.on_terminal(spawn)
        return Program(name=seating.name, argv=argv, cwd=seating.cwd), launch.session

    def _needs(self, needs: Needs, place: Place) -> Needs:
        """What its kind needs, and what a turn does: to find the door, and to read what is handed over as a file."""
        doors = () if self.kit.door_folder is None else (self.kit.door_folder,)
        writable = (place.home, place.temporary, *needs.writable)
        return replace(
            needs,
            writable=tuple(dict.fromkeys(writable)),
            readable=(*needs.readable, self.door_file.parent, self.messages, *doors),
        )
