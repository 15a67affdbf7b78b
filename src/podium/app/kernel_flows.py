"""Bodies of the kernel's flows: one gated call, and a delivery whose guarded files wait for approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import count

from pydantic import Field

from podium.core.decisions import CallOutcome, Refusal
from podium.core.errors import CallRefused, GuardedFilesChanged, ToolBroke
from podium.core.events import ToolResolved
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.protected_paths import GUARDED_TOOL
from podium.core.workspaces import Delivery, GuardedChange
from podium.ports import (
    EventQuery,
    FlowBody,
    FlowContext,
    StepContext,
    Store,
    StoreView,
    Toolbox,
    Workspace,
    Workspaces,
)


def times_not_happened(step: StepContext, view: StoreView) -> int:
    """Count how often a person resolved this step's call as not happened: after each, it is a new call."""
    beginning = f"{step.run_id}:{step.key}:"
    events = view.events(EventQuery(run_id=step.run_id, types=("tool_resolved",)))
    bodies = (event.body for event in events if isinstance(event.body, ToolResolved))
    return sum(body.call.startswith(beginning) and not body.happened for body in bodies)


CALL = "call"
"""The flow's name."""
MAX_ASKED = 5
"""Maximum number of times a person is asked: a question whose deadline passed is asked again."""


class CallJob(FrozenModel):
    """The call that is wanted."""

    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    role: str = ""
    """As what it is asked for."""
    asked_by: str = ""
    provenance: tuple[str, ...] = ()
    """Untrusted sources of the wish."""


@dataclass(frozen=True)
class CallDeps:
    """Dependencies of the flow of one call."""

    store: Store
    toolbox: Toolbox


def calling(deps: CallDeps) -> FlowBody:
    """Build the flow of one call with its dependencies."""

    async def call(ctx: FlowContext, job: CallJob) -> Json:
        for asked in count():
            outcome: CallOutcome | Refusal = await ctx.step(
                "call", partial(_act, deps, job), index=asked, returns=CallOutcome | Refusal
            )
            if isinstance(outcome, CallOutcome):
                return _result(outcome)
            if outcome.approval_id is None or asked >= MAX_ASKED:
                raise CallRefused(outcome.say)
            signal = f"approval:{outcome.approval_id}"
            await ctx.wait(signal, index=asked, until=outcome.deadline)
        raise AssertionError("questions are counted without end")

    return call


async def _act(deps: CallDeps, job: CallJob, step: StepContext) -> CallOutcome | Refusal:
    again = await deps.store.read(partial(times_not_happened, step))
    call = deps.toolbox.normalise(
        job.tool,
        job.arguments,
        run_id=step.run_id,
        step_key=step.key,
        index=again,
        role=job.role,
        provenance=job.provenance,
    )
    return await deps.toolbox.perform(call, step.checkpoint)


def _result(outcome: CallOutcome) -> Json:
    if not outcome.ok:
        raise ToolBroke(outcome.error)
    return outcome.result


DELIVERY = "delivery"
"""The flow's name."""
MAX_QUESTIONS = 5
"""Maximum number of times a person is asked: a question whose deadline passed, or whose diff has changed, is asked again."""


class DeliveryJob(FrozenModel):
    """The workspace whose commits are to come back."""

    workspace_id: NonEmpty


@dataclass(frozen=True)
class DeliveryDeps:
    """Dependencies of a delivery."""

    workspaces: Workspaces
    toolbox_in: Callable[[str], Awaitable[Toolbox]]
    """The supervisor's tools in a folder, behind the gate."""
    redact: Callable[[str], str]
    owns: Callable[[str], bool] = lambda repository: True
    """Tells if a repository is this project's: a copied project has the runs of its original, not its workspaces."""


def delivery(deps: DeliveryDeps) -> FlowBody:
    """The flow. Killed anywhere, it goes on: what came back already does not come back twice."""

    async def deliver(ctx: FlowContext, job: DeliveryJob) -> Json:
        async def work(step: StepContext) -> Delivery | Refusal:
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
    """Arguments that a person is shown and that the approval is bound to."""
    return {
        "workspace": workspace.record.task,
        "branch": workspace.record.branch.removeprefix("refs/heads/"),
        "files": [redact(file) for file in change.files],
        "diff": redact(change.diff),
        "change": change.digest,
    }
