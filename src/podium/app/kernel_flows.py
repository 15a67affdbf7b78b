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


def said_not_to_have_happened(step: StepContext, view: StoreView) -> int:
    """How often a person said of this step's call that it did not happen: each time it is a new one then."""
    beginning = f"{step.run_id}:{step.key}:"
    events = view.events(EventQuery(run_id=step.run_id, types=("tool_resolved",)))
    bodies = (event.body for event in events if isinstance(event.body, ToolResolved))
    return sum(body.call.startswith(beginning) and not body.happened for body in bodies)


CALL = "call"
"""The flow's name."""
MAX_ASKED = 5
"""How often a person is asked about it: a question whose time ran out is put again."""


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
class CallKit:
    """What the story needs of the house."""

    store: Store
    toolbox: Toolbox


def calling(kit: CallKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def call(ctx: FlowContext, job: CallJob) -> Json:
        for asked in count():
            found: CallOutcome | Refusal = await ctx.step(
                "call", partial(_act, kit, job), index=asked, returns=CallOutcome | Refusal
            )
            if isinstance(found, CallOutcome):
                return _result(found)
            if found.approval_id is None or asked >= MAX_ASKED:
                raise CallRefused(found.say)
            signal = f"approval:{found.approval_id}"
            await ctx.wait(signal, index=asked, until=found.deadline)
        raise AssertionError("questions are counted without end")

    return call


async def _act(kit: CallKit, job: CallJob, step: StepContext) -> CallOutcome | Refusal:
    again = await kit.store.read(partial(said_not_to_have_happened, step))
    call = kit.toolbox.normalise(
        job.tool,
        job.arguments,
        run_id=step.run_id,
        step_key=step.key,
        index=again,
        role=job.role,
        provenance=job.provenance,
    )
    return await kit.toolbox.perform(call, step.checkpoint)


def _result(outcome: CallOutcome) -> Json:
    if not outcome.ok:
        raise ToolBroke(outcome.error)
    return outcome.result


DELIVERY = "delivery"
"""The flow's name."""
MAX_QUESTIONS = 5
"""How often a person is asked: a question whose time ran out, or whose diff has changed, is put again."""


class DeliveryJob(FrozenModel):
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
    """What a person is shown, and the approval is bound to."""
    return {
        "workspace": workspace.record.task,
        "branch": workspace.record.branch.removeprefix("refs/heads/"),
        "files": [redact(file) for file in change.files],
        "diff": redact(change.diff),
        "change": change.digest,
    }
