"""A turn in a workspace is watched: what it had to leave alone is seen before and after it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_rollback import watched
from podium.agents.turn_step import RoleAgent, ask
from podium.core.events import WorkspaceChecked
from podium.core.turns import Reply, Turn
from podium.core.work import RunStatus
from podium.core.workspaces import RepositoryRefs, TurnEnd, Violation
from podium.ports import FlowContext, Workspace
from podium.sandbox import ProcessLauncher
from tests.integration.workspaces.workspace_harness import Place, git
from tests.unit.flows.test_agent_turns import Harness, harness

__all__ = ["harness"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place", ProcessLauncher(), confined=False)


async def in_workspace(
    harness: Harness, workspace: Workspace, turn: Any
) -> tuple[RunStatus, list[WorkspaceChecked]]:
    async def story(ctx: FlowContext, role_agent: RoleAgent, budget: BudgetTracker) -> str:
        reply = await ask(ctx, role_agent, "go", budget=budget, name="act", workspace=workspace)
        return reply.text

    harness.answers(turn)
    engine = harness.open(notify=story)
    run = await engine.finish((await engine.start("story")).id)
    events = await harness.events(run)
    return run.status, [event for event in events if isinstance(event, WorkspaceChecked)]


async def test_a_turn_that_keeps_to_its_workspace_is_proved_to_have(
    harness: Harness, place: Place
) -> None:
    workspace = await place.make()

    async def turn(turn: Turn) -> Reply:
        assert turn.workspace == workspace.record.path
        Path(turn.workspace, "made.txt").write_text("x")
        return Reply(text="done")

    status, [checked] = await in_workspace(harness, workspace, turn)
    assert status is RunStatus.SUCCEEDED
    assert checked.workspace == workspace.record.id
    assert checked.refs_before == checked.refs_after
    assert checked.violations == ()


async def test_a_branch_that_was_moved_is_put_back_and_the_step_fails(
    harness: Harness, place: Place
) -> None:
    workspace = await place.make()
    before = place.user("rev-parse", "feature")

    async def turn(turn: Turn) -> Reply:
        git(place.repository, "branch", "-f", "feature", "main")
        return Reply(text="done")

    status, [checked] = await in_workspace(harness, workspace, turn)
    assert status is not RunStatus.SUCCEEDED
    assert [(violation.what, violation.restored) for violation in checked.violations] == [
        ("ref refs/heads/feature", True)
    ]
    assert checked.refs_before != checked.refs_after
    assert place.user("rev-parse", "feature") == before


async def test_a_turn_that_breaks_is_checked_too(harness: Harness, place: Place) -> None:
    workspace = await place.make()

    async def turn(turn: Turn) -> Reply:
        nested = Path(turn.workspace, "src/planted")
        nested.mkdir(parents=True)
        git(nested, "init", "-q")
        raise RuntimeError("broke")

    status, [checked] = await in_workspace(harness, workspace, turn)
    assert status is not RunStatus.SUCCEEDED
    assert checked.moved_away == ("src/planted/.git",)
    assert not Path(workspace.record.path, "src/planted/.git").exists()


class Found:
    """A workspace at whose end something is found, which takes a while."""

    def __init__(self) -> None:
        self.record = SimpleNamespace(id="ws_1", path="/nowhere")
        self.ending = asyncio.Event()
        self.may_end = asyncio.Event()

    async def begin_turn(self) -> RepositoryRefs:
        return RepositoryRefs(refs={}, files={})

    async def end_turn(self, seen: RepositoryRefs) -> TurnEnd:
        self.ending.set()
        await self.may_end.wait()
        what = Violation(what="ref refs/heads/main", before="a", after="b", restored=True)
        return TurnEnd(violations=(what,), moved_away=(), changed_meanwhile=(), seen=seen)


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_what_is_found_is_noted_however_often_the_turn_is_cancelled(cancels: int) -> None:
    notes: list[WorkspaceChecked] = []
    workspace: Any = Found()
    ctx: Any = SimpleNamespace(note=notes.append)
    begun = asyncio.Event()

    async def turn() -> None:
        async with watched(ctx, workspace):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(turn())
    await begun.wait()
    task.cancel()
    await workspace.ending.wait()
    for _ in range(cancels - 1):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not task.done()
    workspace.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [len(note.violations) for note in notes] == [1]


async def test_a_check_that_is_cancelled_itself_is_noted_and_the_cancellation_goes_on() -> None:
    notes: list[WorkspaceChecked] = []
    workspace: Any = Found()
    ctx: Any = SimpleNamespace(note=notes.append)

    async def turn() -> None:
        async with watched(ctx, workspace):
            pass

    task = asyncio.create_task(turn())
    await workspace.ending.wait()
    task.cancel()
    workspace.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(notes) == 1
