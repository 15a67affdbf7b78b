"""Confinement and gate of the programs of a pair, built on first use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.confinement import PlainFolderConfinement, held_in_workspaces
from podium.config.settings import SandboxSettings
from podium.core.decisions import Budget, Call, Decision, Effect, GateContext, Quota, Tier
from podium.core.errors import BadInput, CallRefused
from podium.core.processes import Confinement, FolderConfinement
from podium.core.protected_paths import is_guarded, lies_in_zone
from podium.core.turns import Turn
from podium.ports import ConfinementProvider, Gate, HookDoor, HookServers, Translate

if TYPE_CHECKING:
    from podium.app.app import Podium


_ANYWHERE = "/folder"
"""Stand-in root: the zones do not depend on the folder."""


class DuetConfinement:
    """Confinement for the folders that pairs work in; see `ConfinementProvider`."""

    def __init__(
        self,
        plain: ConfinementProvider,
        folders: ConfinementProvider,
        held: FolderConfinement | None,
        hidden_paths: Sequence[Path],
    ) -> None:
        """`plain` confines the network, `folders` decides what is mounted, and `held` confines commands. No program of a
        pair may see `hidden_paths`, such as the socket of the pair's tmux."""
        self._plain = plain
        self._folders = folders
        self._held = held
        self._hidden_paths = tuple(path.resolve() for path in hidden_paths)

    async def confinement(self, root: str) -> Confinement:
        """Raises `BadInput` for a folder that holds a hidden path, or that cannot be confined."""
        self._refuse_hidden_paths(root)  # first: confining leaves an empty state folder
        try:
            confinement = await self._plain.confinement(root)
            if confinement.kind == "none":
                return confinement
            mounted = await self._folders.confinement(root)
        except CallRefused as refused:
            why = str(refused).partition(";")[0]
            raise BadInput(
                f"{root!r} cannot be confined: {why}; give the pair a smaller folder with --cwd DIR"
            ) from None
        return confinement.model_copy(update={"mounts": mounted.mounts})

    def held(self, root: str) -> FolderConfinement | None:
        return self._held

    def _refuse_hidden_paths(self, root: str) -> None:
        real = Path(root).resolve()
        for path in self._hidden_paths:
            if path.is_relative_to(real) or real.is_relative_to(path):
                raise BadInput(
                    f"{root!r} overlaps with Podium's own files ({str(path)!r}), which no agent may access; give the "
                    "pair a folder of its own with --cwd DIR"
                )


def duet_confinement(podium: Podium, *hidden_paths: Path) -> DuetConfinement:
    """Build the confinement of a pair. `hidden_paths` are its own, such as its tmux socket."""
    from podium.policy import exec_rules

    gate, own = podium.gate, podium.folders

    def closed(path: str) -> bool:
        return lies_in_zone(path, gate.closed_paths) or is_guarded(path)

    def hidden(path: str) -> bool:
        # Certificates that everybody has look like keys, and programs break without them.
        return not path.endswith(".pem") and gate.passed_over(f"{_ANYWHERE}/{path}", _ANYWHERE)

    settings, empty = podium.configuration.sandbox, own.user_state / "empty"
    folders = PlainFolderConfinement(settings, exec_rules, empty, closed, hidden)
    # Without confinement nothing can be hidden from programs.
    paths = () if settings.kind == "none" else (own.user_state, own.user_config, *hidden_paths)
    return DuetConfinement(podium.confinement_provider, folders, _held(settings), paths)


def _held(settings: SandboxSettings) -> FolderConfinement | None:
    """Build command confinement as in a workspace, except that a person's own folder cannot be rolled back."""
    held = held_in_workspaces(settings)
    return held and held.model_copy(update={"disposable": False, "undoable": False})


RULE = "duet-messages"


class MessagesGate:
    """Allows reads of files in one private folder; delegates everything else to the wrapped gate."""

    def __init__(self, gate: Gate, folder: str) -> None:
        """Nobody but Podium can write to `folder`, so no link in it leads elsewhere."""
        self._gate = gate
        self._folder = folder

    def decide(self, call: Call, context: GateContext) -> Decision:
        if call.tool == "read_file" and self._is_message(str(call.arguments.get("path", ""))):
            reason = "the file is a message for this program"
            return Decision(effect=Effect.ALLOW, tier=Tier.T0, rule=RULE, reason=reason)
        return self._gate.decide(call, context)

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._gate.quotas_for(call, context)

    def passed_over(self, real_path: str, root: str) -> bool:
        return self._gate.passed_over(real_path, root)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._gate.budgets

    @property
    def approval_seconds(self) -> float:
        return self._gate.approval_seconds

    def _is_message(self, path: str) -> bool:
        """Check for a file `…/SIDE/messages/NAME.txt` of the folder."""
        if not Path(path).is_absolute() or os.path.normpath(path) != path:
            return False
        file = Path(path)
        if not file.is_relative_to(self._folder):
            return False
        parts = file.relative_to(self._folder).parts
        return len(parts) == 3 and parts[1] == "messages"


class LazyHookServers:
    """Hook servers built with the first turn; see `HookServers`."""

    def __init__(self, build: Callable[[], Awaitable[HookServers]]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._built: HookServers | None = None

    @asynccontextmanager
    async def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AsyncIterator[HookDoor]:
        async with self._building:
            built = self._built = self._built or await self._build()
        async with built.open(turn, agent=agent, translate=translate) as door:
            yield door


class LazyConfinement:
    """Confinement built on first use; see `ConfinementProvider`."""

    def __init__(self, build: Callable[[], ConfinementProvider]) -> None:
        self._build = build

    @cached_property
    def _built(self) -> ConfinementProvider:
        return self._build()

    async def confinement(self, root: str) -> Confinement:
        return await self._built.confinement(root)

    def held(self, root: str) -> FolderConfinement | None:
        return self._built.held(root)
