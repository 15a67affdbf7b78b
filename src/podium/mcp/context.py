"""Context of the MCP tools, the lines they share, and the shape of a tool: arguments, answer, hints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import mcp_types as types
from pydantic import BaseModel, ValidationError

from podium.app.app import Podium
from podium.app.approvals import MAX_OPEN, list_approvals
from podium.app.run_list import RunListing, with_host_status
from podium.app.work_request import asked_by
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.tool_replies import cut_to, result_text
from podium.core.work import Run
from podium.render.approval import what_line

PROVENANCE = ("mcp",)
"""Provenance of requests from MCP clients: it raises tiers, and approves nothing."""
MAX_TASK_CHARACTERS = 500

Served = Callable[[Podium, Run], Awaitable[str]]
"""Makes sure that a worker serves the run's queue, and describes it."""


@dataclass(frozen=True)
class McpContext:
    """Context of MCP tools: the open Podium, and a function that gets runs served."""

    podium: Podium
    served: Served

    @property
    def by(self) -> str:
        return f"mcp:{self.podium.settings.user}"


class RunLine(FrozenModel):
    """A run in short."""

    run_id: str
    flow: str
    task: str
    status: str
    """queued, running, interrupted, waiting, needs_human, succeeded, failed or cancelled."""
    ended: bool
    queue: str | None
    asked_by: str
    created_at: UtcDatetime
    finished_at: UtcDatetime | None
    waiting_for: str | None
    approvals: tuple[str, ...]
    """Ids of approvals that people have not answered yet."""
    failure: str


class ApprovalLine(FrozenModel):
    """A pending or answered approval, and how a person answers it."""

    approval_id: str
    run_id: str
    status: str
    """pending, granted, reserved, consumed, rejected or expired."""
    what: str
    tier: str
    approvers: tuple[str, ...]
    deadline: UtcDatetime
    answered_by: tuple[str, ...]
    why: str
    """Reason of a rejection."""
    said: str
    """Comment of the approvers."""
    how: str
    """Next step for a person to decide, or to continue the run. No MCP tool approves."""


async def run_lines(context: McpContext, runs: list[Run]) -> list[RunLine]:
    """Return the runs with live status and pending approvals."""
    if not runs:
        return []
    podium = context.podium
    agent_statuses = await with_host_status(runs, podium.engine)
    waiting: dict[str, list[str]] = {}
    for approval in await list_approvals(await podium.store(), podium.clock, limit=MAX_OPEN):
        waiting.setdefault(approval.run_id, []).append(approval.id)
    return [_line(status, tuple(waiting.get(status.run.id, ()))) for status in agent_statuses]


async def run_line(context: McpContext, run: Run) -> RunLine:
    (line,) = await run_lines(context, [run])
    return line


def _line(status: RunListing, approvals: tuple[str, ...]) -> RunLine:
    run = status.run
    return RunLine(
        run_id=run.id,
        flow=run.flow,
        task=run.task[:MAX_TASK_CHARACTERS],
        status=status.shown_status,
        ended=run.status.ended,
        queue=run.queue,
        asked_by=asked_by(run),
        created_at=run.created_at,
        finished_at=run.finished_at,
        waiting_for=run.waiting_for,
        approvals=approvals,
        failure=run.failure.message if run.failure else "",
    )


def approval_line(approval: Approval, goes_on: str = "") -> ApprovalLine:
    """Describe the approval; `goes_on` is the next step for a person once it is answered."""
    open_ = approval.status is ApprovalStatus.PENDING
    return ApprovalLine(
        approval_id=approval.id,
        run_id=approval.run_id,
        status=approval.status.value,
        what=what_line(approval),
        tier=str(approval.tier),
        approvers=approval.approvers,
        deadline=approval.deadline,
        answered_by=tuple(grant.by for grant in approval.grants) or _rejected_by(approval),
        why=approval.why,
        said=approval.said,
        how=decision_hint(approval.id) if open_ else goes_on,
    )


def _rejected_by(approval: Approval) -> tuple[str, ...]:
    return (approval.rejected_by,) if approval.rejected_by else ()


def decision_hint(approval_id: str) -> str:
    return (
        f"a person decides with `podium approve {approval_id}` or `podium reject {approval_id} --why …`, "
        "or on the card in the console"
    )


def bounded(value: Json, longest: int) -> Json:
    """Return the value, or the beginning of its JSON as text when it is longer."""
    text = result_text(value)
    return value if len(text) <= longest else cut_to(longest, text)


MAX_TEXT = 100_000
"""Maximum characters of one answer."""

Changes = Literal["nothing", "something", "much"]
"""Effect of a tool: `nothing` is read-only, `much` may be destructive."""

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True)
class McpTool(Generic[A]):
    """One of Podium's own MCP tools."""

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[BaseModel]
    handler: Callable[[McpContext, A], Awaitable[BaseModel]]
    """Handler; a protocol result is passed on unchanged."""
    changes: Changes = "nothing"
    idempotent: bool = True

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.answer.model_json_schema(mode="serialization"),
            annotations=hints(self.title, self.changes, idempotent=self.idempotent),
        )

    async def called(self, context: McpContext, values: dict[str, Json]) -> types.CallToolResult:
        """Call the tool. Raises `BadInput` that names every invalid argument."""
        try:
            arguments = self.arguments.model_validate(values)
        except ValidationError as error:
            raise BadInput(_problems_text(self.name, error, self.arguments)) from None
        answer = await self.handler(context, arguments)
        return answer if isinstance(answer, types.CallToolResult) else structured(answer)


def hints(title: str, changes: Changes, *, idempotent: bool) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        title=title,
        read_only_hint=changes == "nothing",
        destructive_hint=changes == "much",
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


def structured(answer: BaseModel, *, ok: bool = True) -> types.CallToolResult:
    """Build a result with structured content, and the same as text for models."""
    text = cut_to(MAX_TEXT, answer.model_dump_json())
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=answer.model_dump(mode="json"),
        is_error=not ok,
    )


def failed(message: str) -> types.CallToolResult:
    """Build an error result; the message says why and what to do."""
    text = cut_to(MAX_TEXT, message)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _problems_text(tool: str, error: ValidationError, shape: type[BaseModel]) -> str:
    names = ", ".join(shape.model_fields) or "none"
    problems: Sequence[Any] = error.errors(include_url=False, include_input=False)
    text = "; ".join(
        f"{'.'.join(str(part)[:60] for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in problems[:10]
    )
    return f"{tool}: {text}; arguments: {names}"
