"""Where a run happens again: the house of today, with nothing behind its doors that could act."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.events import PlaybookEnded, RunSucceeded
from podium.domain.playbook_runs import Changes, Ground
from podium.journal import StoreJournal
from podium.ports import Enclosures, Gate, Launcher, Store, ToolDoor
from podium.wiring.podium import Podium
from podium.wiring.replay.outcomes import NoLauncher, Outcomes, RecordedFiles
from podium.wiring.replay.reading import Recording
from podium.wiring.replay.tape import Tape
from podium.wiring.replay.timing import RecordedClock, RecordedDeadlines, RecordedIds

if TYPE_CHECKING:
    from podium.tools import LocalToolbox, Registry


class Stage(Podium):
    """A Podium for one process of a replayed run: its policy and its tools are today's, and its tools do nothing."""

    def __init__(self, podium: Podium, tape: Tape, record: Store) -> None:
        self.recorded_clock = RecordedClock(tape)
        super().__init__(
            podium.configuration,
            podium.environ,
            clock=self.recorded_clock,
            ids=RecordedIds(tape, podium.ids),
            tell=podium.tell,
        )
        self.outcomes = Outcomes(tape, self.recorded_clock)
        self._tape = tape
        self._record = record

    async def journal(self) -> StoreJournal:
        return StoreJournal(self._record)

    async def tool_door(
        self,
        root: Path | None = None,
        *,
        attended: bool = False,
        registry: Registry | None = None,
        gate: Gate | None = None,
        mode: str = "",
        enclosures: Enclosures | None = None,
        store: Store | None = None,
    ) -> ToolDoor:
        door = await super().tool_door(
            root,
            attended=attended,
            registry=registry,
            gate=RecordedDeadlines(gate or self.gate, self._tape, self.recorded_clock),
            mode=mode,
            enclosures=enclosures,
            store=store or self._record,
        )
        return RecordedFiles(door, self._tape)

    def toolbox_behind(
        self,
        door: ToolDoor,
        root: Path | None = None,
        registry: Registry | None = None,
        *,
        gate: Gate | None = None,
        enclosures: Enclosures | None = None,
        launcher: Launcher | None = None,
    ) -> LocalToolbox:
        return super().toolbox_behind(
            door,
            root,
            self.outcomes.tools(registry or self.registry),
            gate=gate,
            enclosures=enclosures,
            launcher=launcher or NoLauncher(),
        )


class RecordedGrounds:
    """A folder that nobody looks into: what was different in the end is what the trace says."""

    def __init__(self, recording: Recording) -> None:
        self._changes = _changes_in(recording)

    async def prepare(self, run_id: str, root: str, *, as_copy: bool) -> Ground:
        return Ground(root=root, is_copy=as_copy)

    async def changes(self, ground: Ground, root: str) -> Changes:
        return self._changes

    async def leave(self, ground: Ground) -> None:
        return


def _changes_in(recording: Recording) -> Changes:
    """Whole where the run succeeded; else the names alone, which is all that its end tells."""
    found = Changes()
    for event in recording.events:
        match event.body:
            case PlaybookEnded(changed=paths):
                found = Changes(paths=paths)
            case RunSucceeded(result={"changes": dict(changes)}):
                found = Changes.model_validate(changes)
    return found
