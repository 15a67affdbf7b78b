"""The API: the same use cases as the command line, for programs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from podium.app.app import Podium
from podium.core.events import NoteTaken, RunCancelled
from podium.core.work import RunStatus
from podium.engine import FlowDefinition
from podium.ports import Flow, FlowContext, StepContext, Transaction
from podium.testing import retry_until
from podium.web.access.tokens import ConsoleRole
from podium.web.live import sse
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.pending_items import add_approval, add_run
from tests.integration.web.records import a_past

API = "/api/v1"


async def build_steps(podium: Podium) -> Flow:
    async def body(ctx: FlowContext, _input: object) -> str:
        async def work(step: StepContext) -> str:
            return step.key

        return await ctx.step("work", work)

    return FlowDefinition("steps", body)


FLOWS = {"steps": build_steps}


async def fetch(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await client.get(f"{API}{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_approvals_are_listed_by_the_page_and_the_last_page_says_so(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        run = await add_run(stage.podium)
        asked = [(await add_approval(stage.podium, run)).id for _ in range(3)]
        first = await fetch(client, "/approvals", limit=2)
        rest = await fetch(client, "/approvals", limit=2, before=first["before"])
        assert [item["id"] for item in (*first["approvals"], *rest["approvals"])] == asked[::-1]
        assert (first["before"], rest["before"]) == (asked[1], None)
        assert (await fetch(client, "/approvals", limit=3))["before"] is None


async def test_runs_are_listed_by_the_page_filtered_and_shown_whole(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        first = await fetch(client, "/runs", limit=2)
        rest = await fetch(client, "/runs", limit=2, before=first["before"])
        ids = [item["run"]["id"] for item in (*first["runs"], *rest["runs"])]
        assert sorted(ids) == sorted([past.done, past.failed, past.waiting])
        assert rest["before"] is None
        for name, value, run_id in (
            ("status", "failed", past.failed),
            ("queue", "default", past.waiting),
            ("text", "of SUCCEEDED", past.done),
        ):
            (found,) = (await fetch(client, "/runs", **{name: value}))["runs"]
            assert found["run"]["id"] == run_id
        shown = await fetch(client, f"/runs/{past.done[-12:]}")
        assert shown["usage"]["usd"] == 1.5
        assert shown["delivered"]["branch"] == "podium/x"
        steps = await fetch(client, f"/runs/{past.done}/steps", limit=3)
        assert [step["key"] for step in steps["steps"]] == ["work#0", "work#1", "work#2"]
        more = await fetch(client, f"/runs/{past.done}/steps", after=steps["after"])
        assert [step["key"] for step in more["steps"]] == ["work#3", "work#4"]
        assert more["after"] is None


async def test_page_reads_events_and_the_trace_has_one_line_per_event(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        page = await fetch(client, f"/runs/{past.done}/events", limit=5)
        assert page["more"]
        rest = await fetch(client, f"/runs/{past.done}/events", after=page["after"])
        events = [*page["events"], *rest["events"]]
        assert [event["seq"] for event in events] == list(range(1, 14))
        everything = await fetch(client, "/events", types=["run_succeeded", "run_failed"])
        assert [event["run_id"] for event in everything["events"]] == [past.done, past.failed]
        trace = await client.get(f"{API}/runs/{past.failed}/trace")
        lines = [json.loads(line) for line in trace.text.splitlines()]
        assert [line["type"] for line in lines] == ["run_started", "note_taken", "run_failed"]
        assert "attachment" in trace.headers["content-disposition"]


async def test_an_approval_is_answered_once_and_only_by_those_who_may(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage:
        past = await a_past(stage.podium)
        place = f"{API}/approvals/{past.approval}"
        viewer = stage.new_token("vera", ConsoleRole.VIEWER)
        operator = stage.new_token("otto", ConsoleRole.OPERATOR)
        for token in (viewer, operator):
            async with stage.client(token) as client:
                refused = await client.post(f"{place}/approve", json={})
                assert refused.status_code == 403
        async with stage.client() as client:
            other = await client.post(f"{place}/approve", json={"digest": "sha256:9"})
            assert (other.status_code, other.json()["title"]) == (409, "NotPossibleNow")
            card = (await client.get(place)).json()
            assert card["card"]["approval"]["status"] == "pending"
            given = await client.post(f"{place}/approve", json={"digest": "sha256:0"})
            assert given.json()["status"] == "granted"
            assert given.json()["grants"][0]["by"] == "sam"
            late = await client.post(f"{place}/reject", json={"why": "too late"})
            assert late.status_code == 409
            assert late.headers["content-type"] == "application/problem+json"


async def test_an_answer_for_a_run_that_has_ended_is_refused_by_program_and_page(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        store = await stage.podium.store()
        asked = await store.read(lambda view: view.approval(past.approval))
        assert asked is not None
        run = await store.read(lambda view: view.run(asked.run_id))
        assert run is not None
        ended = run.model_copy(update={"status": RunStatus.CANCELLED})
        await store.write(lambda tx: tx.save_run(ended))
        for act, body in (("approve", {"digest": asked.digest}), ("reject", {"why": "no"})):
            late = await client.post(f"{API}/approvals/{asked.id}/{act}", json=body)
            assert (late.status_code, late.json()["title"]) == (409, "ApprovalClosed")
            assert "was cancelled before the approval was answered" in late.json()["detail"]
        assert (await client.get(f"{API}/approvals")).json()["approvals"] == []
        card = await client.get(f"/cards/{asked.id}")
        assert "was cancelled before the approval was answered" in card.text
        assert "without an answer" not in card.text


async def test_a_run_is_retried_here_and_one_in_a_queue_is_cancelled(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        ended = await client.post(f"{API}/runs/{past.done}/resume", json={})
        assert ended.status_code == 409
        again = await client.post(f"{API}/runs/{past.failed}/retry", json={})
        assert again.status_code == 202, again.text

        async def succeeded() -> bool:
            shown = await fetch(client, f"/runs/{past.failed}")
            return bool(shown["shown_status"] == "succeeded")

        await retry_until(succeeded)
        wished = await client.post(f"{API}/runs/{past.waiting}/cancel", json={"why": "enough"})
        assert wished.status_code == 202
        assert wished.json()["cancel_requested"] or wished.json()["status"] == "cancelled"


async def test_doubt_is_settled_receipts_are_proved_and_usage_is_reported(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        (call,) = (await fetch(client, f"/runs/{past.waiting}/calls"))["calls"]
        body = {"call": call["key"], "happened": False}
        answer = await client.post(f"{API}/calls/resolve", json=body)
        assert answer.json()["status"] == "refused"
        (receipt,) = (await fetch(client, "/receipts", run=past.done))["receipts"]
        assert receipt["number"] == 1
        assert (await fetch(client, "/receipts/verify"))["sound"]
        used = await fetch(client, "/budgets", run=past.done)
        assert used["today"]["usd"] == used["run"]["usd"] == 1.5
        health = await fetch(client, "/health")
        assert health["waiting"] == 1
        assert (await fetch(client, "/queues"))["queues"]
        assert "workers" in await fetch(client, "/workers")
        assert set((await fetch(client, "/flows"))["flows"]) >= {"pipeline", "operator"}
        assert (await fetch(client, "/work-orders"))["waiting"] == []
        missing = await client.get(f"{API}/work-orders/WO-1")
        assert missing.status_code == 404


async def test_liveness_is_open_and_says_nothing_else(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client("") as client:
        alive = await client.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
        for path in ("/openapi.json", "/health", "/events/stream", "/runs/x/events/stream"):
            assert (await client.get(f"{API}{path}")).status_code == 401, path


async def note(stage: Stage, run_id: str, text: str) -> None:
    store = await stage.podium.store()
    await store.write(lambda tx: tx.append(run_id, NoteTaken(text=text)))


async def test_a_stream_goes_on_where_a_browser_lost_it_and_ends_with_the_run(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        past = await a_past(stage.podium)
        path = f"{API}/runs/{past.waiting}/events/stream"
        seen: list[tuple[str, str]] = []

        async def read(last: str = "") -> None:
            headers = {"last-event-id": last} if last else {}
            async with client.stream("GET", path, headers=headers) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert answer.headers["x-accel-buffering"] == "no"
                await _take(answer, seen)

        reading = asyncio.create_task(read("1"))
        await retry_until(lambda: seen)
        await note(stage, past.waiting, "one\ntwo\r\n")
        await retry_until(lambda: len(seen) == 2)

        def end(tx: Transaction) -> None:
            run = tx.run(past.waiting)
            assert run
            tx.append(run.id, RunCancelled())
            tx.save_run(run.model_copy(update={"status": RunStatus.CANCELLED}))

        await (await stage.podium.store()).write(end)
        async with asyncio.timeout(60):
            await reading
        assert [kind for kind, _ in seen] == ["2", "3", "4", "end"]
        assert json.loads(seen[1][1])["body"]["text"] == "one\ntwo\r\n"
        for wrong in ("x", "-1", "²", "9" * 40):
            answer = await client.get(path, headers={b"last-event-id": wrong.encode()})
            assert answer.status_code == 422, wrong


async def _take(answer: httpx.Response, seen: list[tuple[str, str]]) -> None:
    name, data = "", ""
    async for line in answer.aiter_lines():
        field, _, value = line.partition(": ")
        if field in ("id", "event"):
            name = value
        elif field == "data":
            data = value
        elif not line and name:
            seen.append((name, data))
            name, data = "", ""


async def test_silence_is_filled_and_a_reader_that_leaves_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        await a_past(stage.podium)
        async with client.stream("GET", f"{API}/events/stream") as answer:
            lines = answer.aiter_lines()
            async with asyncio.timeout(60):
                while await anext(lines) != ": still here":
                    pass
            assert stage.context.hub.followers == 1
        await retry_until(lambda: stage.context.hub.followers == 0)


async def test_a_stream_can_be_asked_to_end_by_itself(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        await a_past(stage.podium)
        answer = await client.get(f"{API}/events/stream", params={"seconds": 0.05, "after": 0})
        assert answer.text.endswith("event: end\ndata: \n\n")
        assert stage.context.hub.followers == 0


async def test_work_is_put_into_its_queue_and_its_faults_are_reported(
    tmp_path: Path,
) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        answer = await client.post(
            f"{API}/runs", json={"flow": "pipeline", "options": {"speed": 11}, "text": "x"}
        )
        assert answer.status_code == 422
        assert "speed" in answer.json()["detail"]
        plan = await client.post(f"{API}/operator/ask", json={"text": "hello", "mode": "execute"})
        assert plan.status_code == 422
        assert "mode" in plan.json()["detail"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("sent", "fetch"),
    [
        ({}, "send a JSON object as the body"),
        ({"content": b'{"flow": "sense"}'}, "application/json"),
        ({"json": ["sense"]}, "send a JSON object as the body"),
        (
            {"content": b'{"flow":', "headers": {"content-type": "application/json"}},
            "no JSON, from character 8 on",
        ),
        ({"json": {}}, "flow: Field required"),
    ],
)
async def test_a_body_that_cannot_be_read_is_answered_with_what_to_send(
    tmp_path: Path, sent: dict[str, Any], fetch: str
) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        answer = await client.post(f"{API}/runs", **sent)
        assert answer.status_code == 422
        assert fetch in answer.json()["detail"]
