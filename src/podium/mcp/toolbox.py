"""The gated toolbox: each call is a run of its own, judged, approved, performed, receipted and journalled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Literal

import mcp_types as types
from pydantic import Field

from podium.app.kernel_flows import CALL, CallJob, callable_specs
from podium.core.decisions import Tier, ToolSpec
from podium.core.errors import LockHeld, NotPossibleNow
from podium.core.model import FrozenModel, Json, NonEmpty, digest_of
from podium.core.tool_replies import failure_text, offered_names, offered_schema, refusal_text
from podium.core.work import Run, RunStatus
from podium.mcp.context import (
    PROVENANCE,
    McpContext,
    McpTool,
    bounded,
    decision_hint,
    failed,
    hints,
    run_line,
    structured,
)
from podium.ports import StoreView

ASK_HUMAN = "ask_human"
MAX_NAME = 48
MAX_RESULT = 60_000
MAX_WAITING = 50
"""Limit of unfinished calls."""
PATIENCE_SECONDS = 25.0
"""Seconds before a call answers `running`: clients give a call about a minute."""
REFUSED = "CallRefused"


class CallAnswer(FrozenModel):
    """State of a call."""

    status: Literal["done", "waiting", "running"]
    """`waiting`: a person is asked, and nothing was done yet. Call again with the same arguments afterwards."""
    run_id: str
    result: Json = None
    """With `done`."""
    receipt: int | None = None
    """With `done`: its number in the run's chain of receipts."""
    approval_id: str = ""
    say: str = ""
    """Next step."""


class Question(FrozenModel):
    question: NonEmpty = Field(description="Question for a person to decide.", max_length=2_000)
    choices: tuple[NonEmpty, ...] = Field(
        default=(),
        max_length=12,
        description="Two or more answers to choose from; a person may also write their own.",
    )


class GatedToolbox:
    """Tools of the project for clients. Calls wait for approval without blocking the client."""

    def __init__(self, context: McpContext) -> None:
        self._context = context
        specs = {spec.name: spec for spec in callable_specs() if spec.name != ASK_HUMAN}
        self._specs = {name: specs[real] for name, real in offered_names(specs, MAX_NAME).items()}
        self._pending_runs: dict[str, str] = {}
        """Digest of a call → its run, until its result was returned."""

    def listed(self) -> list[types.Tool]:
        return [_listed(name, spec) for name, spec in self._specs.items()]

    def offers(self, name: str) -> bool:
        return name in self._specs

    async def called(self, name: str, arguments: Mapping[str, Json]) -> types.CallToolResult:
        return await self._called(self._specs[name].name, dict(arguments))

    async def asked(self, question: Question) -> types.CallToolResult:
        """Ask a person. Their answer is the result."""
        return await self._called(
            ASK_HUMAN, question.model_dump(mode="json", exclude_defaults=True)
        )

    async def _called(self, tool: str, arguments: dict[str, Json]) -> types.CallToolResult:
        key = digest_of([CALL, self._context.by, tool, arguments])
        run = await self._run(key, tool, arguments)
        engine = await self._context.podium.hosting_engine()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                run = await engine.finish(run.id, stop_when_waiting=True)
        except TimeoutError:
            self._pending_runs[key] = run.id
            again = (
                f"still running as run {run.id}; call again with the same arguments for its result"
            )
            return structured(CallAnswer(status="running", run_id=run.id, say=again))
        if run.status.ended:
            self._pending_runs.pop(key, None)
        else:
            self._pending_runs[key] = run.id
        return await self._answer(run)

    async def _run(self, key: str, tool: str, arguments: dict[str, Json]) -> Run:
        """Return the hosted run of this call: the pending one, or a new one."""
        podium = self._context.podium
        engine, store = await podium.hosting_engine(), await podium.store()
        earlier = self._pending_runs.get(key, "")
        run = await store.read(lambda view: view.run(earlier)) if earlier else None
        if run is None:
            await self._refuse_too_many()
            run = await engine.start(
                CALL,
                self._job(tool, arguments).model_dump(mode="json"),
                task=tool,
                dedup_key=key,
                settings=podium.configuration.run_settings(),
            )
        if run.status.ended or await engine.hosted([run.id]):
            return run
        # Begun by a server that is gone, or let go of while nobody answered. Should another process
        # take it in this moment, that one sees to it.
        with suppress(LockHeld, NotPossibleNow):
            return await engine.resume(run.id, by=self._context.by)
        return run

    def _job(self, tool: str, arguments: dict[str, Json]) -> CallJob:
        return CallJob(
            tool=tool,
            arguments=arguments,
            role="mcp",
            asked_by=self._context.by,
            provenance=PROVENANCE,
        )

    async def _refuse_too_many(self) -> None:
        """Raise `NotPossibleNow` when too many calls are pending."""
        if len(self._pending_runs) < MAX_WAITING:
            return
        store = await self._context.podium.store()
        for key, run_id in list(self._pending_runs.items()):
            run = await store.read(partial(_run_of, run_id))
            if run is None or run.status.ended:
                del self._pending_runs[key]
        if len(self._pending_runs) >= MAX_WAITING:
            raise NotPossibleNow(
                f"{MAX_WAITING} calls are already pending; nothing was done. `approvals` "
                "lists those that are waiting for people; try again when they have answered"
            )

    async def _answer(self, run: Run) -> types.CallToolResult:
        if run.status is RunStatus.SUCCEEDED:
            return structured(await self._done(run))
        if run.status.ended:
            return failed(_failure(run))
        line = await run_line(self._context, run)
        if line.approvals:
            (approval_id, *_) = line.approvals
            say = (
                f"waiting for approval {approval_id}; nothing was done yet. {decision_hint(approval_id)}. "
                "Then call again with the same arguments"
            )
            return structured(
                CallAnswer(status="waiting", run_id=run.id, approval_id=approval_id, say=say)
            )
        say = f"run {run.id} is {line.status}; see `podium show {run.id}`"
        return structured(CallAnswer(status="running", run_id=run.id, say=say))

    async def _done(self, run: Run) -> CallAnswer:
        store = await self._context.podium.store()
        receipts = await store.read(lambda view: view.receipts(run.id))
        return CallAnswer(
            status="done",
            run_id=run.id,
            result=bounded(run.result, MAX_RESULT),
            receipt=receipts[-1].number if receipts else None,
        )


def _run_of(run_id: str, view: StoreView) -> Run | None:
    return view.run(run_id)


def _failure(run: Run) -> str:
    if run.failure is None:
        return failure_text(f"run {run.id} is {run.status.value}")
    if run.failure.kind == REFUSED:
        return f"{refusal_text(run.failure.message)} (run {run.id})"
    return f"{failure_text(run.failure.message)} (run {run.id})"


def _listed(name: str, spec: ToolSpec) -> types.Tool:
    reads = spec.tier is Tier.T0
    return types.Tool(
        name=name,
        description=(
            f"{spec.description}\nRuns in the project's folder, through Podium's gate: judged, journalled and receipted. "
            "When approval is needed, you are told to wait; make the same call afterwards to get the result."
        ),
        input_schema={"properties": {}, **offered_schema(spec.input_schema), "type": "object"},
        output_schema=CallAnswer.model_json_schema(mode="serialization"),
        annotations=hints(name, "nothing" if reads else "much", idempotent=spec.idempotent),
    )


def request_approval(toolbox: GatedToolbox) -> McpTool[Question]:
    """Build the tool by which a client asks a person."""

    async def asked(context: McpContext, question: Question) -> types.CallToolResult:
        return await toolbox.asked(question)

    return McpTool(
        "request_approval",
        "Ask a person",
        "Ask a person a question, such as whether something may go ahead. You get the approval's ID and how a person "
        "decides; make the same call afterwards to get their answer. The answer alone approves no call.",
        Question,
        CallAnswer,
        asked,
        changes="something",
    )
