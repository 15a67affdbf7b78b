"""The fence around the programs of a pair: a person's own folder, and nothing that tells either of them what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.errors import BadInput, CallRefused
from podium.domain.guarded_files import is_guarded
from podium.domain.launching import Confinement, Held
from podium.domain.protected_paths import lies_in_zone
from podium.ports import Enclosures
from podium.wiring.enclosures import held_in_workspaces
from podium.wiring.playbook_fence import PlaybookFence
from podium.wiring.settings import SandboxSettings

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

_ANYWHERE = "/folder"
"""Which folder it is makes no difference to its zones."""


class DuetFence:
    """Fences for folders that pairs work in; see `Enclosures`."""

    def __init__(
        self, plain: Enclosures, folders: Enclosures, held: Held | None, kept: Sequence[Path]
    ) -> None:
        """`plain` decides whether and how the network is held, `folders` what is shown, and `held` is how commands are
        kept. `kept` are places, such as the socket of the pair's tmux, that no program of a pair may see."""
        self._plain = plain
        self._folders = folders
        self._held = held
        self._kept = tuple(place.resolve() for place in kept)

    async def confinement(self, root: str) -> Confinement:
        """Raises `BadInput` for a folder that holds what is kept, or that no fence can be drawn around."""
        self._refuse_kept(root)  # first: drawing a fence leaves an empty state folder
        try:
            fence = await self._plain.confinement(root)
            if fence.kind == "none":
                return fence
            shown = await self._folders.confinement(root)
        except CallRefused as refused:
            why = str(refused).partition(";")[0]
            raise BadInput(
                f"no fence can be drawn around {root!r}: {why}; give the pair a smaller folder with --cwd DIR"
            ) from None
        return fence.model_copy(update={"mounts": shown.mounts})

    def held(self, root: str) -> Held | None:
        return self._held

    def _refuse_kept(self, root: str) -> None:
        real = Path(root).resolve()
        for place in self._kept:
            if place.is_relative_to(real) or real.is_relative_to(place):
                raise BadInput(
                    f"{root!r} holds what Podium itself keeps ({str(place)!r}), which no agent may touch; give the "
                    "pair a folder of its own with --cwd DIR"
                )


def duet_fence(podium: Podium, *kept: Path) -> DuetFence:
    """The fence for a pair whose own things, its tmux socket above all, are `kept`."""
    from podium.gate import exec_rules

    gate, own = podium.gate, podium.folders

    def closed(path: str) -> bool:
        return lies_in_zone(path, gate.closed_paths) or is_guarded(path)

    def hidden(path: str) -> bool:
        # Certificates that everybody has look like keys, and programs break without them.
        return not path.endswith(".pem") and gate.passed_over(f"{_ANYWHERE}/{path}", _ANYWHERE)

    settings, empty = podium.configuration.sandbox, own.user_state / "empty"
    folders = PlaybookFence(settings, exec_rules, empty, closed, hidden)
    # Without a fence nothing can be kept from programs.
    places = () if settings.kind == "none" else (own.user_state, own.user_config, *kept)
    return DuetFence(podium.enclosures, folders, _held(settings), places)


def _held(settings: SandboxSettings) -> Held | None:
    """As in a workspace, but that nobody can roll back a person's own folder."""
    held = held_in_workspaces(settings)
    return held and held.model_copy(update={"disposable": False, "undoable": False})
