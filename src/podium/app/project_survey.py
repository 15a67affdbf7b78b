"""Survey of a folder for `podium init`: agents, checks, and what prevents a run."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.agent_status import Standing, standings
from podium.app.project_setup import Proposal, cast_roles
from podium.config.folders import PROJECT_FILE
from podium.core.errors import BadInput, PodiumError
from podium.git.repository import look_at
from podium.git.worktree_files import read_text
from podium.jobs.pipeline import Check, Detection, detect_all
from podium.jobs.pipeline.composition import run_check_in

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.core.workspaces import RepositoryLook


_PREFERRED = ("claude", "codex", "gemini", "opencode")
"""Which of several agents a new project uses first."""
_PROBE_SECONDS = 60.0
_FILE_BYTES = 1_000_000
_LISTING_BYTES = 16_000_000
_MAX_LISTED = 5


async def survey(podium: Podium) -> Proposal:
    """Propose the settings that the project lacks. Runs no code of the project, and changes nothing.

    Raises `BadInput` in a git directory, where no project can be.
    """
    agents, (look, problem) = await asyncio.gather(standings(podium), _repository(podium))
    own = [agent.name for agent in agents if agent.configured]
    ready = [] if own else [agent.kind for agent in agents if agent.ready]
    kinds = sorted(ready, key=_PREFERRED.index)
    players = tuple(kinds or _ready_first(own, agents))
    needs_roles = "default" not in podium.settings.roles and (kinds or len(own) > 1)
    detection, notes = Detection(), _about_repository(podium, look)
    if podium.settings.checks is None:
        try:
            detection = await _detect(podium, look)
        except PodiumError as error:
            notes.append(f"checks were not looked for: {error}")
        if not detection.checks:
            notes.append("no check was found; each run looks for the project's test command again")
    notes += [f"checks may be missing: {text}" for text in detection.not_read]
    notes += [f"not proposed: {text}" for text in detection.not_installed]
    return Proposal(
        agents=tuple(kinds),
        players=players,
        roles=cast_roles(players) if needs_roles else {},
        checks=detection.checks[:1] or None,
        other_checks=detection.checks[1:],
        notes=tuple(notes),
        repository_problem=problem,
    )


def _ready_first(own: Sequence[str], agents: Sequence[Standing]) -> list[str]:
    ready = {agent.name for agent in agents if agent.ready}
    return sorted(own, key=lambda name: name not in ready)


async def _repository(podium: Podium) -> tuple[RepositoryLook | None, str]:
    git, folder = podium.repository_git, str(podium.folders.project)
    try:
        return await look_at(git, folder), ""
    except PodiumError as error:
        problem = str(error)
    inside = await git.run("-C", folder, "rev-parse", "--is-inside-git-dir", accept=(0, 128))
    if inside.stdout.strip() == b"true":
        raise BadInput(f"{folder!r} is a git directory; run this in a checkout with files")
    return None, problem


def _about_repository(podium: Podium, look: RepositoryLook | None) -> list[str]:
    if look is None:
        return []
    notes = []
    if Path(look.checkout).resolve() != podium.folders.project:
        notes.append(f"this is a folder of {look.checkout!r}; checks run at the top of that")
    changed = [path for path in look.changed if path != PROJECT_FILE]
    if changed:
        listed = ", ".join(changed[:_MAX_LISTED]) + (" …" if len(changed) > _MAX_LISTED else "")
        notes.append(f"not committed: {listed}; commit or stash that before `podium run`")
    if not look.branch:
        notes.append(
            "HEAD is detached; check a branch out before `podium run`, or name one with --base"
        )
    return notes


async def _detect(podium: Podium, look: RepositoryLook | None) -> Detection:
    """Look through the tracked files; where nothing is committed yet, through all that git does not ignore."""
    top = Path(look.checkout) if look else podium.folders.project
    everything = () if look else ("--cached", "--others", "--exclude-standard")
    listing = await podium.repository_git.run(
        "-C", str(top), "ls-files", "-z", *everything,
        output_bytes=_LISTING_BYTES, cut=True, accept=(0, 128),
    )  # fmt: skip
    # The last one may be cut, and is empty otherwise.
    paths = listing.stdout.decode(errors="surrogateescape").split("\0")[:-1]

    async def read(path: str) -> str | None:
        return await asyncio.to_thread(read_text, top, path, _FILE_BYTES)

    async def run(line: str) -> str:
        """In an empty folder: what git does not carry, such as node_modules, is not in a run's workspace either."""
        with tempfile.TemporaryDirectory(prefix="podium-init-") as folder:
            probe = Check(name="installed tools", command=line)
            return (await run_check_in(podium, folder, probe, _PROBE_SECONDS)).tail

    return await detect_all(read, paths, run)
