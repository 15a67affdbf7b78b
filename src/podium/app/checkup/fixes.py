"""Fixes that need no person's decision: nothing here removes anything that somebody may need."""

from __future__ import annotations

from contextlib import suppress

from podium.app.app import Podium
from podium.app.workspaces import survey_workspaces
from podium.core.errors import PodiumError
from podium.platform import is_wide, tighten

_NO_REPOSITORY = "none"


async def fix_what_is_safe(podium: Podium) -> list[str]:
    """Close folders to others, end processes of killed Podiums and clear away what they left.

    Returns what was done, a sentence each. What cannot be done stays as it is, and `podium workspaces list` shows it.
    """
    done = []
    folders = podium.folders
    for folder in (folders.state, folders.user_state, *folders.private):
        if is_wide(folder):
            tighten(folder)
            if not is_wide(folder):
                done.append(f"{folder} is closed to others")
    if podium.record_loss or not folders.state.is_dir():
        return done
    await podium.end_orphans()
    repository = await podium.workspaces.repository_of(str(folders.project)) or _NO_REPOSITORY
    overview = await survey_workspaces(podium.workspaces, git_dir=repository)
    for leftover in overview.leftovers:
        with suppress(PodiumError):
            removal = await podium.workspaces.clear(leftover.id)
            done.append(f"{leftover.id} is cleared away: {removal.because}")
    return done
