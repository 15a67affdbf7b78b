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
from podium.app.submission import asked_by
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.tool_replies import cut_to, result_text
from podium.core.work import Run
from podium.render.approval import what_line

PROVENANCE = ("mcp",)
"""What comes in here was said by a program: it raises tiers, and is nobody's yes."""
MAX_WORDS = 500

Served = Callable[[Podium, Run], Awaitable[str]]
"""Sees to it that somebody serves the run's queue, and says who."""


@dataclass(frozen=True)
class Desk:
    """The open Podium, and who is at this door."""

    podium: Podium
    served: Served

    @property
    def by(self) -> str:
        return f"mcp:{self.podium.settings.user}"


class RunLine(FrozenModel):
    """A run, told shortly."""

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
    """What a person is asked, and how they answer."""

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
    """Why it was rejected."""
    said: str
    """What people said with their yes."""
    how: str
    """What a person does to decide, or to continue the answered run. No tool of this door approves."""


async def run_lines(desk: Desk, runs: list[Run]) -> list[RunLine]:
    """The runs as they really stand, with what each waits for people to say."""
    if not runs:
        return []
    podium = desk.podium
    standings = await with_host_status(runs, podium.engine)
    waiting: dict[str, list[str]] = {}
    for each in await list_approvals(await podium.store(), podium.clock, limit=MAX_OPEN):
        waiting.setdefault(each.run_id, []).append(each.id)
    return [_line(each, tuple(waiting.get(each.run.id, ()))) for each in standings]


async def run_line(desk: Desk, run: Run) -> RunLine:
    (line,) = await run_lines(desk, [run])
    return line


def _line(standing: RunListing, approvals: tuple[str, ...]) -> RunLine:
    run = standing.run
    return RunLine(
        run_id=run.id,
        flow=run.flow,
        task=run.task[:MAX_WORDS],
        status=standing.shown_status,
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
    """The approval for a client; `goes_on` is what a person does for the run once it is answered."""
    open_ = approval.status is ApprovalStatus.PENDING
    return ApprovalLine(
        approval_id=approval.id,
        run_id=approval.run_id,
        status=approval.status.value,
        what=what_line(approval),
        tier=str(approval.tier),
        approvers=approval.approvers,
        deadline=approval.deadline,
        answered_by=tuple(each.by for each in approval.grants) or _rejected_by(approval),
        why=approval.why,
        said=approval.said,
        how=how_people_decide(approval.id) if open_ else goes_on,
    )


def _rejected_by(approval: Approval) -> tuple[str, ...]:
    return (approval.rejected_by,) if approval.rejected_by else ()


def how_people_decide(approval_id: str) -> str:
    return (
        f"a person decides: `podium approve {approval_id}` or `podium reject {approval_id} --why …`, "
        "or the card on the console"
    )


def bounded(value: Json, longest: int) -> Json:
    """The value, or the beginning of its JSON as text where it is longer."""
    text = result_text(value)
    return value if len(text) <= longest else cut_to(longest, text)


MAX_TEXT = 100_000
"""Characters of one answer: a model reads it."""

Changes = Literal["nothing", "something", "much"]
"""`nothing` is only looked at, `much` may destroy."""

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True)
class DoorTool(Generic[A]):
    """One of Podium's own tools."""

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[BaseModel]
    handler: Callable[[Desk, A], Awaitable[BaseModel]]
    """What it answers; a result of the protocol is passed on as it is."""
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

    async def called(self, desk: Desk, given: dict[str, Json]) -> types.CallToolResult:
        """The answer. Raises `BadInput` that names every argument which does not fit."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            raise BadInput(_faults(self.name, error, self.arguments)) from None
        answer = await self.handler(desk, arguments)
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
    """An answer for programs, and the same as text for models."""
    text = cut_to(MAX_TEXT, answer.model_dump_json())
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=answer.model_dump(mode="json"),
        is_error=not ok,
    )


def failed(words: str) -> types.CallToolResult:
    """Nothing came of a call; the words say why and what to do."""
    text = cut_to(MAX_TEXT, words)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _faults(tool: str, error: ValidationError, shape: type[BaseModel]) -> str:
    known = ", ".join(shape.model_fields) or "none"
    found: Sequence[Any] = error.errors(include_url=False, include_input=False)
    said = "; ".join(
        f"{'.'.join(str(part)[:60] for part in each['loc']) or 'arguments'}: {each['msg']}"
        for each in found[:10]
    )
    return f"{tool}: {said}; arguments: {known}"
