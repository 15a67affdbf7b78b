"""Rollback of a turn's workspace, and the comparison of what it had to leave alone before and after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from podium.core.approval_steps import revive
from podium.core.decisions import Approval, ApprovalStatus, CallRecord, CallStatus, digest_of
from podium.core.errors import BadInput, NotPossibleNow, PodiumError, WorkspaceTampered
from podium.core.events import NoteTaken, ToolAbandoned, WorkspaceChecked
from podium.core.settlement import draft_receipt, give_back
from podium.core.work import Run
from podium.core.workspaces import RepositoryRefs, TurnEnd, WorktreeSnapshot
from podium.platform.completion import run_to_completion
from podium.ports import Clock, FlowContext, Store, StoreView, Transaction, Workspace

ROLLED_BACK = "rolled back with its workspace to the start of the turn"
"""Error on the receipt of a call whose effects are gone."""
_OPEN = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
_MADE = (*_OPEN, CallStatus.COMPLETED, CallStatus.FAILED)


async def snapshot_turn(ctx: FlowContext, workspace: Workspace) -> WorktreeSnapshot | None:
    """Keep the workspace as a turn left it. None: not all of it can be kept, so later turns are not rolled back.

    A snapshot holds files and commits: a merge that was begun, or another branch, would be lost by going back.
    """
    try:
        state = await workspace.state()
        if state.merging or not state.on_branch:
            return None
        snapshot = await workspace.snapshot("a turn that waits for approvals")
    except (NotPossibleNow, WorkspaceTampered) as error:
        ctx.note(
            NoteTaken(
                text=f"No snapshot of the workspace was taken at the end of the turn: {error}"
            )
        )
        return None
    return snapshot if snapshot.complete else None


async def restore_turn(
    ctx: FlowContext, workspace: str | Workspace, snapshot: WorktreeSnapshot | None
) -> bool:
    """Put the workspace back to where the last turn left it, if it is elsewhere. False: that cannot be done.

    Whatever is there now, of a turn that did not end or of a person, is kept as another snapshot, and told.
    """
    if snapshot is None or isinstance(workspace, str):
        return False
    try:
        now = await workspace.snapshot("found before a turn of the conversation")
        if now.commit == snapshot.commit:
            return True
        await workspace.restore(snapshot)
    except (BadInput, NotPossibleNow) as error:
        # Another host may not have it.
        ctx.note(
            NoteTaken(
                text=f"The workspace could not be restored to the end of the last turn: {error}"
            )
        )
        return False
    text = f"The workspace was restored to the end of the last turn. Its contents before that are kept as {now.ref}."
    ctx.note(NoteTaken(text=text))
    return True


async def roll_back_calls(store: Store, clock: Clock, run: Run, step_key: str) -> int:
    """Close the disposable calls of a step, each with a receipt that says so; gives how many there were.

    Only when the workspace is as it was before them. Asked for again, such a call is judged and made anew. Any
    other open call may have had an effect elsewhere and stays a matter for a person. What was used stays counted.
    """
    if not await store.read(lambda view: _disposable(view, run.id, step_key)):
        return 0

    def work(tx: Transaction) -> int:
        tx.guard(run.id, run.fence)
        records = _disposable(tx, run.id, step_key)
        for record in records:
            _roll_back(tx, record, clock.now())
        return len(records)

    return await store.write(work)


def _disposable(view: StoreView, run_id: str, step_key: str) -> list[CallRecord]:
    return [
        record
        for record in view.calls(run_id)
        if record.step_key == step_key
        and record.disposable
        and not record.observed
        and record.status in _MADE
    ]


def _roll_back(tx: Transaction, record: CallRecord, now: datetime) -> None:
    approval = tx.approval(record.approval_id) if record.approval_id else None
    draft = draft_receipt(record, "rolled_back", now, approval=approval)
    receipt = tx.add_receipt(draft.model_copy(update={"error": ROLLED_BACK}))
    tx.append(
        record.run_id,
        ToolAbandoned(call=record.key, tool=record.tool, receipt=receipt.number, rolled_back=True),
    )
    # Whatever it had done is undone, so the yes that it held was not used.
    if record.status in _OPEN:
        give_back(tx, record, approval)
    elif approval is not None and _is_used_by(record, approval):
        tx.save_approval(revive(approval, record.key))
    update = {
        "status": CallStatus.ABANDONED,
        "outcome": None,
        "receipt_number": receipt.number,
        "settled_at": now,
    }
    tx.save_call(record.model_copy(update=update))


def _is_used_by(record: CallRecord, approval: Approval) -> bool:
    """Return whether the call alone used it up. A plan's approval is for all its calls."""
    used = approval.status is ApprovalStatus.CONSUMED and approval.reserved_by == record.key
    return used and not approval.plan_hash


def folder_of(workspace: str | Workspace) -> str:
    return workspace if isinstance(workspace, str) else workspace.record.path


@asynccontextmanager
async def watched(ctx: FlowContext, workspace: str | Workspace) -> AsyncIterator[None]:
    """Check what happens in a workspace inside this at its end, however that comes.

    Raises `WorkspaceTampered` when something was changed that was nobody's business there. A plain
    folder is not watched.
    """
    if isinstance(workspace, str):
        yield
        return
    refs = await workspace.begin_turn()
    try:
        yield
    except asyncio.CancelledError as cancelled:
        # What is found is noted. The run was cancelled all the same, and must be seen to have been.
        try:
            await run_to_completion(_check(ctx, workspace, refs))
        except PodiumError as error:
            cancelled.add_note(str(error))
        raise
    except BaseException:
        await run_to_completion(_check(ctx, workspace, refs))
        raise
    else:
        await run_to_completion(_check(ctx, workspace, refs))


async def _check(ctx: FlowContext, workspace: Workspace, refs: RepositoryRefs) -> None:
    end = await workspace.end_turn(refs)
    ctx.note(_checked(workspace.record.id, refs, end))
    if end.violations:
        raise WorkspaceTampered(_violations_text(end))


def _checked(workspace_id: str, refs: RepositoryRefs, end: TurnEnd) -> WorkspaceChecked:
    return WorkspaceChecked(
        workspace=workspace_id,
        refs_before=digest_of(refs.model_dump()),
        refs_after=digest_of(end.seen.model_dump()),
        violations=end.violations,
        moved_away=end.moved_away,
        changed_meanwhile=end.changed_meanwhile,
    )


def _violations_text(end: TurnEnd) -> str:
    changes = ", ".join(
        f"{violation.what} ({'restored' if violation.restored else 'could not be restored'})"
        for violation in end.violations
    )
    return (
        f"something outside the workspace was changed during the turn: {changes}; check it, then resume "
        "or cancel the run"
    )
