"""Builders of the kernel's own flows: one call and one delivery."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.kernel_flows import (
    DELIVERY,
    CallDeps,
    DeliveryDeps,
    DeliveryJob,
    calling,
    delivery,
)
from podium.core.decisions import ApprovalStatus, Tier, ToolSpec
from podium.core.errors import ImportRefused
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.protected_paths import GUARDED_TOOL
from podium.core.work import Run, RunStatus
from podium.core.workspaces import Delivery, GuardedChange, WaitingDelivery, WorkspaceRecord
from podium.ports import FlowBody, RunQuery, Toolbox

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.tools import Registry, Tool
    from podium.tools.scope import ToolScope


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
        f"nothing came back: {why} (run {short_id(run.id)}, {', '.join(change.files)}). Undo that change with "
        "commits made anew, then deliver again"
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
