"""Survey of a folder for `podium init`: agents, checks, and what prevents a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.agent_status import Standing, agent_statuses
from podium.app.checks import (
    ADVICE,
    Detection,
    cannot_test,
    missing_programs,
    named_checks,
    remedy_for,
)
from podium.app.project_setup import Proposal, cast_roles
from podium.config.folders import PROJECT_FILE
from podium.core.errors import BadInput, PodiumError
from podium.git.repository import look_at

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.core.workspaces import CheckoutStatus


_PREFERRED = ("claude", "codex", "gemini", "opencode")
"""Order in which a new project prefers agents."""
_MAX_LISTED = 5


async def survey(podium: Podium) -> Proposal:
    """Propose the settings that the project lacks. Runs no code of the project, and changes nothing.

    Raises `BadInput` in a git directory, where no project can be.
    """
    agents, (look, problem) = await asyncio.gather(agent_statuses(podium), _repository(podium))
    own = [agent.name for agent in agents if agent.configured]
    ready = [] if own else [agent.kind for agent in agents if agent.ready]
    kinds = sorted(ready, key=_PREFERRED.index)
    candidates = tuple(kinds or _ready_first(own, agents))
    needs_roles = "default" not in podium.settings.roles and (kinds or len(own) > 1)
    detection, notes = Detection(), _about_repository(podium, look)
    if podium.settings.checks is None:
        try:
            detection = await podium.project_checks.detect(look)
        except PodiumError as error:
            notes.append(f"checks were not looked for: {error}")
        notes += _about_checks(podium, detection)
    return Proposal(
        agents=tuple(kinds),
        candidates=candidates,
        roles=cast_roles(candidates) if needs_roles else {},
        checks=detection.checks[:1] or None,
        other_checks=detection.checks[1:],
        notes=tuple(notes),
        repository_problem=problem,
    )


def _about_checks(podium: Podium, detection: Detection) -> list[str]:
    notes = [f"checks may be missing: {text}" for text in detection.not_read]
    if detection.checks:
        return [*notes, *(f"not proposed: {text}" for text in detection.not_installed)]
    if not detection.not_installed:
        return [
            *notes,
            f"no tests were found, so runs will stop for a person before a branch goes out; {ADVICE}",
        ]
    problem = cannot_test(detection.not_installed, remedy_for(detection, podium.folders.project))
    return [*notes, f"`podium run` will stop before the first agent: {problem}"]


def _ready_first(own: Sequence[str], agents: Sequence[Standing]) -> list[str]:
    ready = {agent.name for agent in agents if agent.ready}
    return sorted(own, key=lambda name: name not in ready)


async def look_at_checks(podium: Podium) -> tuple[str, str]:
    """Describe the project's checks, and the remedy if they cannot run; empty: none needed."""
    if podium.settings.checks is None:
        detection = await podium.project_checks.detect((await _repository(podium))[0])
        for check in detection.checks[:1]:
            return f"`{check.command}`, found in {check.source}", ""
        remedy = remedy_for(detection, podium.folders.project)
        missing = detection.not_installed
    else:
        named = named_checks(podium.configuration) or ()
        missing, remedy = await missing_programs(named, podium.project_checks.probe), ""
        if named and not missing:
            listed = ", ".join(f"`{check.command}`" for check in named)
            return f"{listed}; `podium init --try-checks` runs them once", ""
    if missing:
        return cannot_test(missing, remedy), remedy or ADVICE
    return "the project has none, so nothing is tested", ""


async def _repository(podium: Podium) -> tuple[CheckoutStatus | None, str]:
    git, folder = podium.repository_git, str(podium.folders.project)
    try:
        return await look_at(git, folder), ""
    except PodiumError as error:
        problem = str(error)
    inside = await git.run("-C", folder, "rev-parse", "--is-inside-git-dir", accept=(0, 128))
    if inside.stdout.strip() == b"true":
        raise BadInput(f"{folder!r} is a git directory; run this in a checkout with files")
    return None, problem


def _about_repository(podium: Podium, look: CheckoutStatus | None) -> list[str]:
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
