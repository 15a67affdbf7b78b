"""A delivery: a workspace's commits come back, and guarded files among them wait for a person's approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from itertools import count

from podium.domain.errors import CallRefused, GuardedFilesChanged, ToolBroke
from podium.domain.gating import Refusal
from podium.domain.guarded_files import GUARDED_TOOL
from podium.domain.model import Json, NonEmpty, Noun
from podium.domain.workspaces import Delivery, GuardedChange
from podium.ports import FlowBody, FlowContext, Step, Toolbox, Workspace, Workspaces

DELIVERY = "delivery"
"""The flow's name."""
MAX_QUESTIONS = 5
"""How often a person is asked: a question whose time ran out, or whose diff has changed, is put again."""


class DeliveryJob(Noun):
    """The workspace whose commits are to come back."""

    workspace_id: NonEmpty


@dataclass(frozen=True)
class DeliveryDeps:
    """What a delivery needs."""

    workspaces: Workspaces
    toolbox_in: Callable[[str], Awaitable[Toolbox]]
    """The supervisor's tools in a folder, behind the gate."""
    redact: Callable[[str], str]
    owns: Callable[[str], bool] = lambda repository: True
    """Whether a repository is this project's: a copied project has the runs of its original, not its workspaces."""


def delivery(deps: DeliveryDeps) -> FlowBody:
    """The flow. Killed anywhere, it goes on: what came back already does not come back twice."""

    async def deliver(ctx: FlowContext, job: DeliveryJob) -> Json:
        async def work(step: Step) -> Delivery | Refusal:
            workspace = await deps.workspaces.open(job.workspace_id)
            if not deps.owns(workspace.record.repository):
                raise CallRefused(
                    f"workspace {workspace.record.task!r} belongs to {workspace.record.repository!r}, not to this "
                    "project; deliver it from there"
                )
            return await deliver_approved(deps, workspace, step.run_id, step.key)

        for asked in count():
            answer: Delivery | Refusal = await ctx.step(
                "deliver", work, index=asked, returns=Delivery | Refusal
            )
            if isinstance(answer, Delivery):
                return answer.model_dump(mode="json")
            if answer.approval_id is None or asked >= MAX_QUESTIONS:
                raise CallRefused(answer.decision.reason)
            await ctx.wait(f"approval:{answer.approval_id}", index=asked, until=answer.deadline)
        raise AssertionError("questions are counted without end")

    return deliver


async def deliver_approved(
    deps: DeliveryDeps,
    workspace: Workspace,
    run_id: str,
    step_key: str,
    *,
    approved: Collection[str] = (),
) -> Delivery | Refusal:
    """Deliver, asking for the approval of guarded files. A refusal with an approval waits for its answer.

    The approval is bound to the digest of the change: with any other diff a person is asked anew. Nobody is asked
    where all of it is in paths that were `approved` with their contents before.
    """
    try:
        return await workspace.deliver()
    except GuardedFilesChanged as changed:
        change = changed.change
    if set(change.paths) <= set(approved):
        return await workspace.deliver(approved=change.digest)
    root = workspace.record.path
    toolbox = await deps.toolbox_in(root)
    arguments = question_of(workspace, change, deps.redact)
    call = toolbox.normalise(
        GUARDED_TOOL, arguments, run_id=run_id, step_key=step_key, index=0, role="podium", root=root
    )
    outcome = await toolbox.perform(call)
    if isinstance(outcome, Refusal):
        return outcome
    if not outcome.ok:
        raise ToolBroke(outcome.error)
    return await workspace.deliver(approved=change.digest)


def question_of(
    workspace: Workspace, change: GuardedChange, redact: Callable[[str], str]
) -> dict[str, Json]:
    """What a person is shown, and the approval is bound to."""
    return {
        "workspace": workspace.record.task,
        "branch": workspace.record.branch.removeprefix("refs/heads/"),
        "files": [redact(file) for file in change.files],
        "diff": redact(change.diff),
        "change": change.digest,
    }
