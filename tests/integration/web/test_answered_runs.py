"""A run that was parked at the command line goes on after its answer, or the approver is shown what to run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podium.app.app import Podium, open_podium
from podium.app.chat import ChatService
from podium.app.work_request import answered_queue, queues_of
from podium.cli.commands.approvals import answered
from podium.config.chat_settings import SenderSettings
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.engine import FlowDefinition
from podium.mcp.context import McpContext
from podium.mcp.run_tools import ApprovalsArguments, _approvals
from podium.ports import Flow, FlowContext
from podium.testing import retry_until
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.pending_items import add_approval

HTMX = {"hx-request": "true"}


async def _body(ctx: FlowContext, input: Any) -> str:
    answer = await ctx.wait("approval:" + str(input))
    assert answer is not None
    assert isinstance(answer.payload, dict)
    return str(answer.payload["status"])


async def _asker(podium: Podium) -> Flow:
    return FlowDefinition("asker", _body)


FLOWS = {"asker": _asker}


async def _parked(stage: Stage, **environ: str) -> tuple[Run, Approval]:
    """A run of another process, which asked and left."""
    podium = stage.podium
    known = {**podium.environ, **environ}
    async with open_podium(podium.configuration, known, flows=FLOWS) as caller:
        engine = await caller.hosting_engine()
        run_id = caller.ids.new("run")
        asked = await add_approval(
            caller, Run(id=run_id, flow="asker", created_at=caller.clock.now())
        )
        await engine.start("asker", asked.id, run_id=run_id)
        return await engine.finish(run_id, stop_when_waiting=True), asked


@asynccontextmanager
async def _working(podium: Podium) -> AsyncIterator[None]:
    queues = [spec for spec in queues_of(podium.configuration) if not spec.labels]
    engine = await podium.hosting_engine()
    async with engine.serve(queues, answered_queue=answered_queue(podium.configuration, queues)):
        yield


async def _ended(podium: Podium, run_id: str) -> Run:
    store = await podium.store()

    async def look() -> Run | None:
        run = await store.read(lambda view: view.run(run_id))
        return run if run is not None and run.status.ended else None

    found = await retry_until(look)
    assert found is not None
    return found


async def test_the_consoles_worker_takes_up_what_is_answered_by_page_or_api(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, _working(stage.podium):
        by_page, by_api = await _parked(stage), await _parked(stage)
        async with stage.client(**HTMX) as client:
            (run, asked), yes = by_page, {"digest": by_page[1].digest}
            response = await client.post(f"/cards/{asked.id}/approve", data=yes)
            assert "Approved. Its run continues." in response.text
            assert (await _ended(stage.podium, run.id)).result == "granted"
            (run, asked) = by_api
            path = f"/api/v1/approvals/{asked.id}/reject"
            refused = (await client.post(path, json={"why": "not now"})).json()
            assert (refused["status"], refused["continues"], refused["next"]) == (
                "rejected",
                True,
                "",
            )
            assert (await _ended(stage.podium, run.id)).result == "rejected"


async def test_without_a_host_every_interface_says_what_continues_the_run(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        parked = [await _parked(stage) for _ in range(3)]
        commands = [f"`podium resume {short_id(run.id)}`" for run, _ in parked]
        (by_api, by_page, by_chat) = (asked for _, asked in parked)
        yes = await client.post(f"/api/v1/approvals/{by_api.id}/approve", json={})
        assert yes.json()["continues"] is False
        assert commands[0] in yes.json()["next"]
        page = {"digest": by_page.digest}
        response = await client.post(f"/cards/{by_page.id}/approve", data=page, headers=HTMX)
        assert commands[1] in response.text
        assert commands[1] in (await client.get(f"/cards/{by_page.id}")).text
        inbox = (await client.get("/")).text
        assert [command in inbox for command in commands] == [True, True, False]
        sender = SenderSettings(person="sam", roles=("approver",))
        output = await ChatService(stage.podium).answer(sender, f"APPROVE: {by_chat.id}")
        assert commands[2] in output
        granted = by_api.model_copy(update={"status": ApprovalStatus.GRANTED})
        assert commands[0] in (await answered(stage.podium, granted)).next
        listed = await _approvals(_mcp(stage), ApprovalsArguments(approval_id=by_api.id))
        assert commands[0] in listed.approvals[0].how


async def test_a_worker_without_a_secret_of_the_caller_leaves_the_run_and_says_so(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, _working(stage.podium):
        run, asked = await _parked(stage, GITHUB_TOKEN="ghp_of_the_caller")
        assert run.needs == ("variable:GITHUB_TOKEN",)
        async with stage.client() as client:
            yes = (await client.post(f"/api/v1/approvals/{asked.id}/approve", json={})).json()
        expected = f"no process with variable GITHUB_TOKEN hosts run {short_id(run.id)}"
        assert yes["next"].startswith(expected)
        known = await (await stage.podium.store()).read(lambda view: view.run(run.id))
        assert known is not None
        assert known.status is RunStatus.WAITING


def _mcp(stage: Stage) -> McpContext:
    async def served(podium: Podium, run: Run) -> str:
        return ""

    return McpContext(stage.podium, served)
