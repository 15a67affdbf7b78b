"""A door and a toolbox on a store in memory, complete in what a test does not care about."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.core.decisions import Call, CallOutcome, Effect, PathArgument, Receipt, Tier, ToolSpec
from podium.core.errors import BadInput
from podium.core.events import AnyEvent
from podium.core.model import Json
from podium.core.processes import FolderConfinement
from podium.ports import EventQuery, Gate, Launcher, Store
from podium.sandbox import ProcessLauncher
from podium.testing import (
    FakeConfinementProvider,
    FixedClock,
    MemoryStore,
    ScriptedGate,
    SteadyIds,
    decision,
)
from podium.tools import (
    DoorSettings,
    GatedDoor,
    LocalToolbox,
    Registry,
    Tool,
    ToolboxSettings,
    ToolScope,
    builtin_tools,
)

RUN = "run_1"
SECRET = "hunter2-hunter2"


def always(effect: Effect) -> ScriptedGate:
    return ScriptedGate(lambda call, context: decision(effect))


def a_spec(name: str = "send", **changes: Any) -> ToolSpec:
    complete: dict[str, Any] = {"tier": Tier.T1, "receipt_fields": ("number",)}
    return ToolSpec(name=name, **complete | changes)


async def _nothing(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return {}


def a_tool(handler: Any = _nothing, **changes: Any) -> Tool:
    return Tool(a_spec(**changes), handler)


def path_argument(name: str, access: str = "read") -> PathArgument:
    return PathArgument.model_validate({"name": name, "access": access})


def split_plainly(text: str) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Enough of a splitter for tests: `&&` between plain words, `$` is undecidable."""
    if "$" in text:
        return (), "it has a `$`"
    lines = [shlex.split(part) for part in text.split("&&")]
    return tuple(tuple(words) for words in lines if words), ""


def resolve_secret(name: str) -> str:
    if name != "DOOR_KEY":
        raise BadInput(f"no secret {name!r}; name it in the environment")
    return SECRET


@dataclass
class Harness:
    """The working objects of one test."""

    root: Path
    store: Store
    clock: FixedClock
    registry: Registry
    door: GatedDoor
    toolbox: LocalToolbox

    def call(self, tool: str, index: int = 0, **arguments: Json) -> Call:
        return self.toolbox.normalise(
            tool, arguments, run_id=RUN, step_key="work#0", index=index, role="developer"
        )

    async def use(self, tool: str, index: int = 0, **arguments: Json) -> CallOutcome:
        """Perform a call that the gate lets pass."""
        answer = await self.toolbox.perform(self.call(tool, index, **arguments))
        assert isinstance(answer, CallOutcome), answer
        return answer

    async def events(self) -> list[AnyEvent]:
        stored = await self.store.read(lambda view: view.events(EventQuery(run_id=RUN)))
        return [event.body for event in stored]

    async def receipts(self) -> list[Receipt]:
        return await self.store.read(lambda view: view.receipts(RUN))


def make_harness(
    tmp_path: Path,
    tools: Iterable[Tool] | None = None,
    *,
    gate: Gate | None = None,
    launcher: Launcher | None = None,
    store: Store | None = None,
    result_bytes: int = 32_768,
    keep: bool = True,
    held: FolderConfinement | None = None,
) -> Harness:
    root = tmp_path / "workspace"
    root.mkdir(exist_ok=True)
    clock = FixedClock()
    store = store or MemoryStore(clock)
    registry = Registry(builtin_tools() if tools is None else tools)
    door = GatedDoor(
        store,
        gate or always(Effect.ALLOW),
        registry.spec,
        clock=clock,
        ids=SteadyIds(),
        settings=DoorSettings(root=str(root), result_bytes=result_bytes),
        redact=_redact,
        held=lambda root: held,
    )
    toolbox = LocalToolbox(
        registry,
        door,
        launcher or ProcessLauncher(),
        confinements=FakeConfinementProvider(),
        clock=clock,
        settings=ToolboxSettings(
            root=str(root),
            result_bytes=result_bytes,
            undo_folder=str(tmp_path / "kept") if keep else None,
        ),
        split_command=split_plainly,
        looks_secret=lambda text: "DOOR_KEY" if SECRET in text else None,
        resolve_secret=resolve_secret,
        redact=_redact,
        longest_secret=len(SECRET),
        passed_over=lambda path, root: path.startswith(root) and path.endswith("/.env"),
    )
    return Harness(root, store, clock, registry, door, toolbox)


def _redact(text: str) -> str:
    return text.replace(SECRET, "[redacted:DOOR_KEY]")


def parts_of_the_secret_in(*output: object) -> list[str]:
    """Six characters of it are too many."""
    parts = [SECRET[at : at + 6] for at in range(len(SECRET) - 5)]
    return [part for part in parts if part in repr(output)]
