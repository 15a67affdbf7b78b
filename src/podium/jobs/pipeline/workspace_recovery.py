"""Recovery of branch and workspace when a run is resumed, or loses its workspace: both are put where the record says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeVar, cast

from podium.core.errors import LockHeld, NeedsHuman, NotPossibleNow, UserMustAct, WorkspaceTampered
from podium.core.events import BranchDelivered, Event, NoteTaken, RunRetried, StepStarted
from podium.core.work import StepRecord, StepStatus
from podium.core.workspaces import WorkspaceCommit, WorkspaceRecord, WorktreeSnapshot
from podium.jobs.pipeline.stage_evaluation import paths_in
from podium.jobs.pipeline.state import PipelineDeps, PipelineJob
from podium.ports import ONCE, EventQuery, FlowContext, Retry, StepContext, StepFunction, Workspace

_MOVES_BRANCH = ("settle:", "merge:", "checks:", "archive")
"""Steps whose record says where the branch is."""
_BEFORE = ("preflight", "workspace")
"""Steps that are done before a workspace is come back to."""
_SETTLES = re.compile(r"settle:(.+?)(?::asked[0-9]+)?#([0-9]+)")
_WORKS = ("work", "integrate")
_RUNS_CHECKS = ("checks:", "baseline", "proof:", "merge:tasks", "merge:base")
"""Steps that run checks: what failed because its folder went away under it says nothing."""
_MAX_TRIES = 3
_FIRST_PAUSE_SECONDS = 1.0
_PAGE = 1000
_MAX_LISTED = 5


def delivered_head(steps: Sequence[StepRecord]) -> str:
    """The commit that came back last by a run's record; empty when none did.

    A host whose repository has it can go on with the run, whatever became of the workspace.
    """
    for step in sorted(steps, key=lambda record: record.ordinal, reverse=True):
        moves = step.key.startswith(_MOVES_BRANCH) and step.status is StepStatus.COMPLETED
        head = step.output.get("head") if moves and isinstance(step.output, dict) else None
        if isinstance(head, str) and head:
            return head
    return ""


T = TypeVar("T")


class _CurrentWorkspace:
    """The workspace of a run as it is now: one that is lost is replaced by another while the run goes on."""

    def __init__(self, current: Workspace) -> None:
        self.current = current

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


class _RecoveringFlow:
    """A flow's context, whose steps make the workspace again that is gone when they begin, or goes away under them.

    They are done again then, as after a crash, and when somebody else held the workspace. All else is as in the context itself.
    """

    def __init__(
        self,
        flow: FlowContext,
        deps: PipelineDeps,
        job: PipelineJob,
        made: WorkspaceRecord,
        workspace: _CurrentWorkspace,
    ) -> None:
        self._flow = flow
        self._deps = deps
        self._job = job
        self._made = made
        self._workspace = workspace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flow, name)

    async def step(
        self,
        name: str,
        function: StepFunction[T],
        *,
        index: int = 0,
        returns: Any = None,
        retry: Retry = ONCE,
    ) -> T:
        async def work(step: StepContext) -> T:
            why = ""
            for tries in range(_MAX_TRIES):
                if tries:
                    await asyncio.sleep(_FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1))
                await self._recover(step.key)
                try:
                    output = await function(step)
                except LockHeld as held:
                    # Somebody takes a snapshot of it, or looks at it.
                    why = str(held)
                    self._flow.note(NoteTaken(text=f"{step.key} is done again: {held}"))
                except Exception:
                    if not await self._is_gone():
                        raise
                    why = f"the workspace {self._workspace.current.record.path!r} was removed"
                else:
                    if not (name.startswith(_RUNS_CHECKS) and await self._is_gone()):
                        return output
                    why = f"the workspace {self._workspace.current.record.path!r} was removed"
            raise NeedsHuman(
                f"{why}, {_MAX_TRIES} times during {step.key}; find out why, then run `podium resume {step.run_id}`"
            )

        return await self._flow.step(name, work, index=index, returns=returns, retry=retry)

    async def _is_gone(self) -> bool:
        return bool(await self._deps.workspaces.missing(self._made.id))

    async def _recover(self, step: str) -> None:
        """Make the workspace again if it is gone."""
        if not await self._is_gone():
            return
        self._workspace.current = await restore_workspace(
            self._deps, self._job, self._flow.run.id, self._made, step
        )


async def recovering(
    flow: FlowContext, deps: PipelineDeps, job: PipelineJob, made: WorkspaceRecord
) -> tuple[FlowContext, Workspace]:
    """Restore the run's workspace; steps of the context that is given restore it again whenever it is lost."""
    workspace = _CurrentWorkspace(await restore_workspace(deps, job, flow.run.id, made))
    context = _RecoveringFlow(flow, deps, job, made, workspace)
    return cast(FlowContext, context), cast(Workspace, workspace)


async def restore_workspace(
    deps: PipelineDeps, job: PipelineJob, run_id: str, made: WorkspaceRecord, step: str = ""
) -> Workspace:
    """The run's workspace, standing where its next step starts from. Raises `NeedsHuman` when it cannot be.

    `step` is the one that has begun in this process and lost it.
    """
    steps = await deps.budget.store.read(lambda view: view.steps(run_id))
    begun = _Begun(step) if step else await _begun(deps, run_id)
    returning = _Returning(deps, job, run_id, made, delivered_head(steps) or made.base, begun)
    try:
        return await returning.workspace()
    except UserMustAct as error:
        raise NeedsHuman(
            f"the run cannot continue in this workspace: {error}; then run `podium resume {run_id}`, or start over with "
            f"`podium retry {run_id} --from workspace`"
        ) from error


@dataclass(frozen=True)
class _Begun:
    """The step that was begun last, or that a person went back to since."""

    step: str = ""
    retried: bool = False


async def _begun(deps: PipelineDeps, run_id: str) -> _Begun:
    begun, after = _Begun(), 0
    while True:
        types = ("run_retried", "step_started")
        query = EventQuery(run_id=run_id, types=types, after_seq=after, limit=_PAGE)
        events = await deps.journal.read(query)
        for event in events:
            begun = _after(begun, event)
        if len(events) < _PAGE:
            return begun
        after = events[-1].seq


def _after(begun: _Begun, event: Event) -> _Begun:
    body = event.body
    if isinstance(body, RunRetried) and body.discarded_steps:
        return _Begun(body.discarded_steps[0], retried=True)
    if isinstance(body, StepStarted) and body.step not in _BEFORE:
        return _Begun(body.step)
    return begun


@dataclass(frozen=True)
class _Returning:
    deps: PipelineDeps
    job: PipelineJob
    run_id: str
    made: WorkspaceRecord
    head: str
    """Commit of the branch according to the record."""
    begun: _Begun

    async def workspace(self) -> Workspace:
        gone = await self.deps.workspaces.missing(self.made.id)
        if gone:
            workspace = await self._made_again(gone)
        else:
            workspace = await self.deps.workspaces.open(self.made.id)
            await self._refuse_moved(workspace)
            await self._keep_uncommitted(workspace)
        delivered = await workspace.delivered()
        # Past the record is where a killed step leaves it, which finds its own commits again.
        as_it_was = not gone and not self.begun.retried and await workspace.holds(self.head)
        if (delivered != self.head and not as_it_was) or (self.begun.retried and self._settles):
            await self._put(workspace)
        return workspace

    async def _refuse_moved(self, workspace: Workspace) -> None:
        """Refuse a branch that somebody else moved: nothing is built on it, and nothing removes it."""
        branch = self.made.branch
        if self.begun.retried or not await workspace.holds(self.head):
            return
        if not await workspace.holds(branch):
            short, was = branch.removeprefix("refs/heads/"), await workspace.delivered()
            raise NotPossibleNow(
                f"branch {short!r} was at {was[:12]}, and somebody else moved or deleted it; keep its "
                f"current commits under another name (`git branch NAME {short}`), then run `git update-ref {branch} {was}`"
            )

    async def _keep_uncommitted(self, workspace: Workspace) -> None:
        """A step begins with a clean worktree; what a person left in it since is kept, and told."""
        if not self.begun.step or self._settles:
            return
        since = self.deps.clock.now()
        # The step itself answers both.
        with suppress(WorkspaceTampered, LockHeld):
            changed = (await workspace.state()).changed
            snapshot = (
                await workspace.snapshot("found when the run was resumed") if changed else None
            )
            # An older one has the same in it: that was told, or is what a turn left.
            if snapshot is not None and snapshot.at >= since:
                listed = ", ".join(changed[:_MAX_LISTED])
                more = f" and {len(changed) - _MAX_LISTED} more" * (len(changed) > _MAX_LISTED)
                await self._note(
                    f"Uncommitted in the workspace: {listed}{more}. Kept as {snapshot.ref}; the next step starts "
                    "without these changes."
                )

    async def _made_again(self, gone: str) -> Workspace:
        short = self.made.branch.removeprefix("refs/heads/")
        spec = self.deps.workspace_spec(
            self.made.task, base=self.job.base, branch=short, run_id=self.run_id
        )
        workspace, snapshot = await self.deps.workspaces.rebuild(self.made, spec, self.head)
        if snapshot is not None and self._settles and await workspace.delivered() == self.head:
            # The turn is recorded and its commits are not: they were beside the folder that is gone.
            await workspace.restore(snapshot)
        where = (
            f" Changes that only the old workspace had are kept as {snapshot.ref}."
            if snapshot is not None
            else ""
        )
        await self._note(
            f"The workspace was recreated from {self.head[:12]} of {short!r}, in "
            f"{workspace.record.path}: {gone}.{where}"
        )
        return workspace

    async def _put(self, workspace: Workspace) -> None:
        """Branch and worktree as they were before the step."""
        if self._settles:
            await self._stand_at_history(workspace)
        tip, keep = await self._start(workspace)
        why = f"going back to before {self.begun.step or 'the next step'}"
        snapshot = await workspace.stand_at(self.head, why, tip=tip, keep=keep)
        await self._note(_recovery_text(workspace, self.head, self.begun.step, snapshot))

    async def _stand_at_history(self, workspace: Workspace) -> None:
        """Put back what the delivered commits stand for, if the run has delivered: what an answer brought is only there."""
        query = EventQuery(run_id=self.run_id, types=("branch_delivered",), limit=_PAGE)
        bodies = [event.body for event in await self.deps.journal.read(query)]
        delivered = [body.commit for body in bodies if isinstance(body, BranchDelivered)]
        if not delivered:
            return
        why = "going back to before the delivery"
        await workspace.stand_at(delivered[-1], why)
        commits = await workspace.history(self.made.base)
        histories = [c.trailers.get("Podium-History", "") for c in commits if self._is_ours(c)]
        if histories and histories[-1]:
            await workspace.stand_at(histories[-1], why)

    async def _start(self, workspace: Workspace) -> tuple[str, Sequence[str]]:
        """Commit of the worktree when the step begins, and the files that lie in it uncommitted."""
        if not self._settles or not await workspace.holds(self.head):
            return self.head, ()
        name, number = self._settles.groups()
        commits = await workspace.history(self.head)
        if name in self.job.spec.stages and self.job.spec.stages[name].does in _WORKS:
            own = list(takewhile(lambda commit: not self._is_ours(commit), commits))
            return (own[-1].id if own else self.head), ()
        label = f"{name}-{number}"
        filed = [c for c in commits if self._is_ours(c) and c.trailers.get("Podium-Step") == label]
        if not filed:
            return self.head, ()
        # What the agent wrote is in the commit that the step made of it.
        await workspace.reset(filed[0].id, f"going back to before {self.begun.step}")
        return self.head, paths_in(await workspace.diff(self.head))

    def _is_ours(self, commit: WorkspaceCommit) -> bool:
        return commit.trailers.get("Podium-Run") == self.run_id

    @property
    def _settles(self) -> re.Match[str] | None:
        return _SETTLES.fullmatch(self.begun.step)

    async def _note(self, text: str) -> None:
        # Not by the flow's context, which takes notes for told already while it replays.
        await self.deps.journal.append(self.run_id, NoteTaken(text=text))


def _recovery_text(
    workspace: Workspace, head: str, step: str, snapshot: WorktreeSnapshot | None
) -> str:
    short = workspace.record.branch.removeprefix("refs/heads/")
    before = f", where they were before {step}" if step else ""
    where = (
        f" Their previous state is kept as {snapshot.ref} ({snapshot.commit[:12]})."
        if snapshot is not None
        else ""
    )
    return f"{short!r} and its workspace are back at {head[:12]}{before}.{where}"
