"""A turn in a workspace is watched from both ends: what it had to leave alone is seen before and after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podium.domain.errors import PodiumError, WorkspaceTampered
from podium.domain.events import WorkspaceChecked
from podium.domain.gating import digest_of
from podium.domain.workspaces import RefsSeen, TurnEnd
from podium.flows.finishing import to_the_end
from podium.ports import FlowContext, Workspace


def folder_of(workspace: str | Workspace) -> str:
    return workspace if isinstance(workspace, str) else workspace.record.path


@asynccontextmanager
async def watched(ctx: FlowContext, workspace: str | Workspace) -> AsyncIterator[None]:
    """What happens in a workspace inside this is checked at its end, however that comes.

    Raises `WorkspaceTampered` when something was changed that was nobody's business there. A plain
    folder is not watched.
    """
    if isinstance(workspace, str):
        yield
        return
    seen = await workspace.begin_turn()
    try:
        yield
    except asyncio.CancelledError as cancelled:
        # What is found is noted. The run was cancelled all the same, and must be seen to have been.
        try:
            await to_the_end(_check(ctx, workspace, seen))
        except PodiumError as error:
            cancelled.add_note(str(error))
        raise
    except BaseException:
        await to_the_end(_check(ctx, workspace, seen))
        raise
    else:
        await to_the_end(_check(ctx, workspace, seen))


async def _check(ctx: FlowContext, workspace: Workspace, seen: RefsSeen) -> None:
    end = await workspace.end_turn(seen)
    ctx.note(_checked(workspace.record.id, seen, end))
    if end.violations:
        raise WorkspaceTampered(_words(end))


def _checked(workspace_id: str, seen: RefsSeen, end: TurnEnd) -> WorkspaceChecked:
    return WorkspaceChecked(
        workspace=workspace_id,
        refs_before=digest_of(seen.model_dump()),
        refs_after=digest_of(end.seen.model_dump()),
        violations=end.violations,
        moved_away=end.moved_away,
        changed_meanwhile=end.changed_meanwhile,
    )


def _words(end: TurnEnd) -> str:
    told = ", ".join(
        f"{each.what} ({'put back' if each.restored else 'could not be put back'})"
        for each in end.violations
    )
    return (
        f"during the turn something outside the workspace was changed: {told}; look at it, then resume "
        "the run or cancel it"
    )
