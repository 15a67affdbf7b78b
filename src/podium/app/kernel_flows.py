"""The kernel's flows: one gated call, and a delivery whose guarded files wait for approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from podium.core.decisions import ApprovalStatus, CallOutcome, Refusal, Tier, ToolSpec
from podium.core.errors import CallRefused, GuardedFilesChanged, ImportRefused, ToolBroke
from podium.core.events import ToolResolved
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.protected_paths import GUARDED_TOOL
from podium.core.work import Run, RunStatus
from podium.core.workspaces import Delivery, GuardedChange, WaitingDelivery, WorkspaceRecord
from podium.ports import (
    EventQuery,
    FlowBody,
    FlowContext,
    RunQuery,
    StepContext,
    Store,
    StoreView,
    Toolbox,
    Workspace,
    Workspaces,
)

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.tools import Registry, Tool
    from podium.tools.scope import ToolScope


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


_MAX_RUNS = 200
_TEXT: dict[str, Json] = {"type": "string"}


def guarded_files_tool() -> Tool:
    """No agent is offered it. It does nothing by itself: its receipt says what may come back, and who said so."""
    from podium.tools import Tool

    async def import_guarded_files(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        return {name: arguments[name] for name in ("branch", "files", "change")}

    properties: dict[str, Json] = {
        "workspace": _TEXT,
        "branch": _TEXT,
        "files": {"type": "array", "items": _TEXT},
        "diff": _TEXT,
        "change": _TEXT,
    }
    spec = ToolSpec(
        name=GUARDED_TOOL,
        description="Let a workspace's commits come back that change files which guard the project or run by themselves.",
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        tier=Tier.T2,
        receipt_fields=("branch", "files", "change"),
        idempotent=True,
    )
    return Tool(spec, import_guarded_files)


def supervisor_toolboxes(podium: Podium, *more: Tool) -> Callable[[str], Awaitable[Toolbox]]:
    """The supervisor's own tools: those of agents, and what no agent is offered."""
    from podium.tools import Registry, builtin_tools

    registry = Registry([*builtin_tools(), guarded_files_tool(), *more])

    async def toolbox_in(root: str) -> Toolbox:
        folder = Path(root)
        door = await podium.tool_door(folder, registry=registry)
        return podium.toolbox_behind(door, folder, registry)

    return toolbox_in


async def build_delivery(podium: Podium) -> FlowBody:
    """Build the flow with the workspaces of this user."""
    project = podium.folders.project.resolve()
    deps = DeliveryDeps(
        podium.workspaces,
        supervisor_toolboxes(podium),
        podium.redactor.text,
        owns=lambda repository: Path(repository).resolve() == project,
    )
    return delivery(deps)


async def deliver_with_approval(
    podium: Podium, record: WorkspaceRecord, change: GuardedChange
) -> Delivery | WaitingDelivery:
    """Deliver in a run that waits for a person's approval of the change.

    There is one run for each change of a workspace: asked again, it goes on. Runs that wait for the approval of an
    earlier change of the same workspace end. Raises `ImportRefused` when a person rejected the change.
    """
    engine = await podium.hosting_engine()
    key = f"{_key_of(record)}{change.digest}"
    runs = await _runs(podium, record)
    latest = next((run for run in runs if run.dedup_key == key), None)
    if latest is not None and latest.status is RunStatus.FAILED and latest.failure is not None:
        raise _rejected(latest, change)
    for run in runs:
        if run.status is RunStatus.WAITING and run.dedup_key != key:
            await engine.cancel(run.id, by="podium", why="its commits have changed since")
    job = DeliveryJob(workspace_id=record.id).model_dump(mode="json")
    run = await engine.start(DELIVERY, job, task=f"deliver {record.task}", dedup_key=key)
    if run.id not in await engine.hosted([run.id]):
        run = await engine.resume(run.id)
    run = await engine.finish(run.id, stop_when_waiting=True)
    if run.status is RunStatus.SUCCEEDED:
        return Delivery.model_validate(run.result)
    pending = await (await podium.store()).read(
        lambda view: view.approvals(run_id=run.id, statuses=(ApprovalStatus.PENDING,))
    )
    if run.status is not RunStatus.WAITING or not pending:
        raise _rejected(run, change)
    return WaitingDelivery(
        run_id=run.id,
        approval_id=pending[0].id,
        branch=record.branch.removeprefix("refs/heads/"),
        task=record.task,
        files=tuple(map(podium.redactor.text, change.files)),
    )


def _rejected(run: Run, change: GuardedChange) -> ImportRefused:
    why = run.failure.message if run.failure is not None else f"it is {run.status.value}"
    return ImportRefused(
        f"nothing was delivered: {why} (run {short_id(run.id)}, {', '.join(change.files)}). Rewrite the commits "
        "without that change, then deliver again"
    )


def _key_of(record: WorkspaceRecord) -> str:
    return f"{DELIVERY}:{record.id}:"


async def _runs(podium: Podium, record: WorkspaceRecord) -> list[Run]:
    """Deliveries of the workspace, newest first."""
    query = RunQuery(flow=DELIVERY, limit=_MAX_RUNS)
    runs = await (await podium.store()).read(lambda view: view.runs(query))
    return [run for run in runs if (run.dedup_key or "").startswith(_key_of(record))]


OF_TURNS = ("finish",)
"""Tools that make sense only within a turn."""


def callable_tools() -> Registry:
    """The tools that can be called one at a time, in the project's folder."""
    from podium.tools import Registry, builtin_tools

    return Registry([tool for tool in builtin_tools() if tool.spec.name not in OF_TURNS])


def callable_specs() -> tuple[ToolSpec, ...]:
    return tuple(callable_tools().specs())


async def build_call(podium: Podium) -> FlowBody:
    """Build the flow with the tools of this project."""
    registry = callable_tools()
    door = await podium.tool_door(registry=registry)
    toolbox = podium.toolbox_behind(door, registry=registry)
    return calling(CallDeps(await podium.store(), toolbox))
