"""MCP tools for runs: submit, status, result, logs, cancel; plans, approvals and receipts."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from pydantic import Field

from podium.app.approvals import newest_approvals, show_approval
from podium.app.receipts import Verdict, list_receipts, proven
from podium.app.run_continuation import how_it_continues
from podium.app.run_control import cancel as request_cancel
from podium.app.run_list import ShownStatus, list_by_status
from podium.app.run_report import follow_logs, show_run
from podium.app.work_request import WorkRequest, submit
from podium.core.decisions import ApprovalStatus, Receipt
from podium.core.errors import UnknownId
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.tool_replies import cut_to
from podium.core.work import Run
from podium.mcp.context import (
    PROVENANCE,
    ApprovalLine,
    McpContext,
    McpTool,
    RunLine,
    approval_line,
    bounded,
    run_line,
    run_lines,
)
from podium.render.event import event_line

MAX_RESULT = 60_000
MAX_LINE = 1_000
RunId = Annotated[NonEmpty, Field(description="ID of the run, or its short form.", max_length=100)]


class Submitted(FrozenModel):
    """A submitted run; it continues without the client."""

    run: RunLine
    served: str
    """Worker that takes the run."""
    next: str


class StatusArguments(FrozenModel):
    run_id: str = Field(
        default="", description="Run to show; default: the newest runs.", max_length=100
    )
    statuses: tuple[ShownStatus, ...] = Field(
        default=(), description="Only runs with these statuses."
    )
    flow: str = Field(default="", description="Only runs of this flow.", max_length=100)
    limit: int = Field(default=20, ge=1, le=100)


class Runs(FrozenModel):
    """Runs, newest first."""

    runs: tuple[RunLine, ...]


class RunArguments(FrozenModel):
    run_id: RunId


class Result(FrozenModel):
    """Result of a run."""

    run: RunLine
    result: Json
    """None while it has not ended. A long one is the beginning of its JSON, as text."""
    receipts: int
    """Number of performed, sealed calls."""


class LogsArguments(FrozenModel):
    run_id: RunId
    after_seq: int = Field(default=0, ge=0, description="Only events after this sequence number.")
    limit: int = Field(default=100, ge=1, le=500)


class Logs(FrozenModel):
    """Events as text, oldest first."""

    lines: tuple[str, ...]
    next_after_seq: int
    """Pass as `after_seq` to read on."""
    ended: bool
    """The run has ended; no more events follow."""


class CancelArguments(FrozenModel):
    run_id: RunId
    why: str = Field(default="", max_length=1_000)


async def _submit(context: McpContext, request: WorkRequest) -> Submitted:
    run = await submit(context.podium, request, by=context.by, provenance=PROVENANCE)
    served = await context.served(context.podium, run)
    again = f"poll `status` with run_id {run.id!r}; read `result` once it has ended"
    return Submitted(run=await run_line(context, run), served=served, next=again)


async def _status(context: McpContext, query: StatusArguments) -> Runs:
    podium = context.podium
    if query.run_id:
        return Runs(runs=(await run_line(context, await find_run(context, query.run_id)),))
    if not podium.has_record:
        return Runs(runs=())
    agent_statuses = await list_by_status(
        await podium.store(),
        podium.engine,
        tuple(status.value for status in query.statuses),
        flow=query.flow or None,
        limit=query.limit,
    )
    return Runs(runs=tuple(await run_lines(context, [status.run for status in agent_statuses])))


async def _result(context: McpContext, query: RunArguments) -> Result:
    run = await find_run(context, query.run_id)
    store = await context.podium.store()
    receipts = await store.read(lambda view: view.receipts(run.id))
    return Result(
        run=await run_line(context, run),
        result=bounded(run.result, MAX_RESULT),
        receipts=len(receipts),
    )


async def _logs(context: McpContext, query: LogsArguments) -> Logs:
    run = await find_run(context, query.run_id)
    store = await context.podium.store()
    lines: list[str] = []
    reached = query.after_seq
    logs = follow_logs(store, run.id, after_seq=query.after_seq)
    async with aclosing(logs):  # type: ignore[type-var]  # it is an async generator
        async for event in logs:
            if len(lines) == query.limit:
                return Logs(lines=tuple(lines), next_after_seq=reached, ended=False)
            lines.append(cut_to(MAX_LINE, event_line(event)))
            reached = event.seq
    return Logs(lines=tuple(lines), next_after_seq=reached, ended=run.status.ended)


async def _cancel(context: McpContext, request: CancelArguments) -> RunLine:
    run = await find_run(context, request.run_id)
    engine = await context.podium.engine()
    store = await context.podium.store()
    return await run_line(
        context, await request_cancel(store, engine, run.id, by=context.by, why=request.why)
    )


async def find_run(context: McpContext, run_id: str) -> Run:
    """Find the run. Raises `UnknownId` also where nothing was ever recorded, without creating a record."""
    if not context.podium.has_record:
        raise UnknownId("run", run_id)
    return (await show_run(await context.podium.store(), run_id, last_events=0)).run


WORK: tuple[McpTool[WorkRequest] | McpTool[StatusArguments] | McpTool[RunArguments] | McpTool[LogsArguments] | McpTool[CancelArguments], ...] = (
    McpTool(
        "submit",
        "Submit work",
        "Submit work to Podium and get a run ID at once; the run continues by itself. Flows: `pipeline` turns a task into "
        "a reviewed, tested branch; `operator` turns a plain-language request into a validated run of registered tools; `playbook` "
        "follows a playbook (text is its file in the project); `duet` lets a planner and an executer do a task; `sense` reads "
        "the system's state and proposes work. `options` depend on the flow; an invalid one is refused with a list of the valid ones. "
        "Poll `status` with the run ID, then read `result`. Risky calls wait for a person.",
        WorkRequest,
        Submitted,
        _submit,
        changes="something",
        idempotent=False,
    ),
    McpTool(
        "status",
        "Run status",
        "Status of one run, or of the newest runs: what each is waiting for, pending approvals, failures.",
        StatusArguments,
        Runs,
        _status,
    ),
    McpTool(
        "result",
        "Run result",
        "The result of a run that has ended: its value, its failure, and the number of receipts that prove it.",
        RunArguments,
        Result,
        _result,
    ),
    McpTool(
        "logs",
        "Run log",
        "Events of a run as text, page by page: pass `next_after_seq` as `after_seq` for the next page.",
        LogsArguments,
        Logs,
        _logs,
    ),
    McpTool(
        "cancel",
        "Cancel a run",
        "Request that a run and its processes are ended; `status` shows when the run is cancelled.",
        CancelArguments,
        RunLine,
        _cancel,
        changes="much",
    ),
)  # fmt: skip


MAX_RECEIPTS = 500


class ApprovalsArguments(FrozenModel):
    approval_id: str = Field(
        default="", description="Approval to show; default: a list.", max_length=100
    )
    run_id: str = Field(
        default="", description="Only those of this run (ID or its short form).", max_length=100
    )
    everything: bool = Field(default=False, description="Include answered, used and expired ones.")


class Approvals(FrozenModel):
    approvals: tuple[ApprovalLine, ...]
    """Newest first."""
    more: int = 0
    """Number of older ones left out."""


class ReceiptsArguments(FrozenModel):
    run_id: str = Field(
        default="", description="Only those of this run (ID or its short form).", max_length=100
    )
    limit: Annotated[int, Field(ge=1, le=MAX_RECEIPTS)] = 100


class ReceiptLine(FrozenModel):
    """Proof of one call that was performed."""

    run_id: str
    number: int
    tool: str
    status: str
    tier: str
    approved_by: tuple[str, ...]
    fields: dict[str, Json]
    error: str
    settled_at: UtcDatetime


class Proof(FrozenModel):
    """Receipts, newest first, with the verdict on their chains."""

    receipts: tuple[ReceiptLine, ...]
    total: int
    sound: bool
    """No receipt was edited, removed, reordered or cut off."""
    verdict: Verdict


async def _approvals(context: McpContext, query: ApprovalsArguments) -> Approvals:
    podium = context.podium
    if not podium.has_record:
        if query.approval_id:
            raise UnknownId("approval", query.approval_id)
        return Approvals(approvals=())
    store = await podium.store()
    if query.approval_id:
        one = await show_approval(store, podium.clock, query.approval_id)
        goes_on = await how_it_continues(store, podium.engine, one)
        return Approvals(approvals=(approval_line(one, goes_on.next),))
    run_id = (await find_run(context, query.run_id)).id if query.run_id else None
    statuses = () if query.everything else (ApprovalStatus.PENDING,)
    newest = await newest_approvals(store, podium.clock, statuses=statuses, run_id=run_id)
    return Approvals(approvals=tuple(map(approval_line, newest.approvals)), more=newest.more)


async def _receipts(context: McpContext, query: ReceiptsArguments) -> Proof:
    if not context.podium.has_record and not query.run_id:
        return Proof(receipts=(), total=0, sound=True, verdict=Verdict(runs=0, receipts=0))
    run_id = (await find_run(context, query.run_id)).id if query.run_id else None
    verdict = await proven(context.podium, run_id)
    receipts = await list_receipts(await context.podium.store(), run_id)
    newest = sorted(receipts, key=lambda receipt: receipt.settled_at, reverse=True)[: query.limit]
    return Proof(
        receipts=tuple(_receipt(receipt) for receipt in newest),
        total=len(receipts),
        sound=verdict.sound,
        verdict=verdict,
    )


def _receipt(receipt: Receipt) -> ReceiptLine:
    return ReceiptLine(
        run_id=receipt.run_id,
        number=receipt.number,
        tool=receipt.tool,
        status=receipt.status,
        tier=str(receipt.tier),
        approved_by=receipt.approved_by,
        fields=receipt.fields,
        error=receipt.error,
        settled_at=receipt.settled_at,
    )


PEOPLE: tuple[McpTool[ApprovalsArguments] | McpTool[ReceiptsArguments], ...] = (
    McpTool(
        "approvals",
        "Approvals",
        "Pending approvals with their status, and how people answer them. Only people can approve: no MCP tool "
        "can. `request_approval` asks a person a question.",
        ApprovalsArguments,
        Approvals,
        _approvals,
    ),
    McpTool(
        "receipts",
        "Receipts",
        "Receipts of performed calls, newest first, with proof that none was edited, removed, reordered or cut off.",
        ReceiptsArguments,
        Proof,
        _receipts,
    ),
)
