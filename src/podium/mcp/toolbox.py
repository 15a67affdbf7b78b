"""The gated toolbox: each call is a run of its own, judged, approved, performed, receipted and journalled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Literal

import mcp_types as types
from pydantic import Field

from podium.app.flow_builders import callable_specs
from podium.app.kernel_flows import CALL, CallJob
from podium.core.decisions import Tier, ToolSpec
from podium.core.errors import LockHeld, NotPossibleNow
from podium.core.model import FrozenModel, Json, NonEmpty, digest_of
from podium.core.tool_replies import failure_text, offered_names, offered_schema, refusal_text
from podium.core.work import Run, RunStatus
from podium.mcp.context import (
    PROVENANCE,
    Desk,
    DoorTool,
    bounded,
    failed,
    hints,
    how_people_decide,
    run_line,
    structured,
)
from podium.ports import StoreView

ASK_HUMAN = "ask_human"
MAX_NAME = 48
MAX_RESULT = 60_000
MAX_WAITING = 50
"""Calls that have not come to their end."""
PATIENCE_SECONDS = 25.0
"""Clients give a call a minute or so; what takes longer is asked for again."""
REFUSED = "CallRefused"


class CallAnswer(FrozenModel):
    """How a call stands."""

    status: Literal["done", "waiting", "running"]
    """`waiting`: a person is asked, and nothing was done yet. Call again with the same arguments afterwards."""
    run_id: str
    result: Json = None
    """With `done`."""
    receipt: int | None = None
    """With `done`: its number in the run's chain of receipts."""
    approval_id: str = ""
    say: str = ""
    """What to do next."""


class Question(FrozenModel):
    question: NonEmpty = Field(description="What a person shall decide.", max_length=2_000)
    choices: tuple[NonEmpty, ...] = Field(
        default=(),
        max_length=12,
        description="Two or more answers to choose from; a person may also answer in their own words.",
    )


class GatedToolbox:
    """The project's tools for clients. Calls wait for people without holding up the client."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        specs = {spec.name: spec for spec in callable_specs() if spec.name != ASK_HUMAN}
        self._specs = {name: specs[real] for name, real in offered_names(specs, MAX_NAME).items()}
        self._told_to_wait: dict[str, str] = {}
        """Fingerprint of a call → its run, until its end was told."""

    def listed(self) -> list[types.Tool]:
        return [_listed(name, spec) for name, spec in self._specs.items()]

    def offers(self, name: str) -> bool:
        return name in self._specs

    async def called(self, name: str, arguments: Mapping[str, Json]) -> types.CallToolResult:
        return await self._called(self._specs[name].name, dict(arguments))

    async def asked(self, question: Question) -> types.CallToolResult:
        """Put a question to a person. What they say is the result."""
        return await self._called(
            ASK_HUMAN, question.model_dump(mode="json", exclude_defaults=True)
        )

    async def _called(self, tool: str, arguments: dict[str, Json]) -> types.CallToolResult:
        key = digest_of([CALL, self._desk.by, tool, arguments])
        run = await self._run(key, tool, arguments)
        engine = await self._desk.podium.hosting_engine()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                run = await engine.finish(run.id, stop_when_waiting=True)
        except TimeoutError:
            self._told_to_wait[key] = run.id
            again = f"it goes on in run {run.id}; call again with the same arguments for its end"
            return structured(CallAnswer(status="running", run_id=run.id, say=again))
        if run.status.ended:
            self._told_to_wait.pop(key, None)
        else:
            self._told_to_wait[key] = run.id
        return await self._told(run)

    async def _run(self, key: str, tool: str, arguments: dict[str, Json]) -> Run:
        """The run that sees to this very call, hosted: the one whose end was not told yet, or a new one."""
        podium = self._desk.podium
        engine, store = await podium.hosting_engine(), await podium.store()
        earlier = self._told_to_wait.get(key, "")
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
            return await engine.resume(run.id, by=self._desk.by)
        return run

    def _job(self, tool: str, arguments: dict[str, Json]) -> CallJob:
        return CallJob(
            tool=tool,
            arguments=arguments,
            role="mcp",
            asked_by=self._desk.by,
            provenance=PROVENANCE,
        )

    async def _refuse_too_many(self) -> None:
        """Raises `NotPossibleNow` where people owe so many answers that another question helps nobody."""
        if len(self._told_to_wait) < MAX_WAITING:
            return
        store = await self._desk.podium.store()
        for key, run_id in list(self._told_to_wait.items()):
            run = await store.read(partial(_run_of, run_id))
            if run is None or run.status.ended:
                del self._told_to_wait[key]
        if len(self._told_to_wait) >= MAX_WAITING:
            raise NotPossibleNow(
                f"{MAX_WAITING} calls wait already, for people or for their end; nothing was done. `approvals` "
                "lists what people owe; try again when they have answered"
            )

    async def _told(self, run: Run) -> types.CallToolResult:
        if run.status is RunStatus.SUCCEEDED:
            return structured(await self._done(run))
        if run.status.ended:
            return failed(_failure(run))
        line = await run_line(self._desk, run)
        if line.approvals:
            (approval_id, *_) = line.approvals
            say = (
                f"waiting for approval {approval_id}; nothing was done yet. {how_people_decide(approval_id)}. "
                "Then call again with the same arguments"
            )
            return structured(
                CallAnswer(status="waiting", run_id=run.id, approval_id=approval_id, say=say)
            )
        say = f"run {run.id} is {line.status}; `podium show {run.id}` says more"
        return structured(CallAnswer(status="running", run_id=run.id, say=say))

    async def _done(self, run: Run) -> CallAnswer:
        store = await self._desk.podium.store()
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
            f"{spec.description}\nIn the project's folder, through Podium's gate: judged, journalled and receipted. "
            "When a person must agree you are told to wait; the same call afterwards brings the result."
        ),
        input_schema={"properties": {}, **offered_schema(spec.input_schema), "type": "object"},
        output_schema=CallAnswer.model_json_schema(mode="serialization"),
        annotations=hints(name, "nothing" if reads else "much", idempotent=spec.idempotent),
    )


def request_approval(toolbox: GatedToolbox) -> DoorTool[Question]:
    """The tool by which a client puts a question to a person."""

    async def asked(desk: Desk, question: Question) -> types.CallToolResult:
        return await toolbox.asked(question)

    return DoorTool(
        "request_approval",
        "Ask a person",
        "Put a question to a person, such as whether something may go ahead. You are told the approval's id and how a person "
        "decides; the same call afterwards brings their words. It approves nothing by itself.",
        Question,
        CallAnswer,
        asked,
        changes="something",
    )
