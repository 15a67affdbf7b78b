"""Real flows answered in a browser: a work order reaches the inbox folder, a T3 call is made, an edit is asked anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from html import unescape
from pathlib import Path

import pytest
import yaml
from playwright.async_api import Browser

from podium.app.app import Podium
from podium.app.flow_registry import flow_builders
from podium.core.decisions import Approval, ApprovalStatus, Receipt, Tier
from podium.core.model import Json
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.jobs.operator.composition import OperatorSetup, build_operator, operator_options
from podium.jobs.sense.options import order_queues
from podium.ports import Flow, FlowContext
from podium.testing import retry_until
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.pending_items import HOSTILE, add_approval, add_run, approval_now
from tests.unit.operator.office import _RECORDS, _insert
from tests.unit.sense.sense_harness import INBOX, Station, item, plan

REPORT = {"op": "append", "path": "g/reports/daily.md", "content": f"{HOSTILE}\nsecond line\n"}


async def proposed(folder: Path) -> Station:
    """A root whose planner proposes one order, which waits for a person."""
    suggested = item("FIX-A", REPORT)
    suggested["wo_suggestion"]["title"] = f"see to FIX-A {HOSTILE}"
    station = Station(folder, [plan(suggested)], mode="supervised")
    async with station.open() as post:
        await post.tick()
    return station


async def pending(stage: Stage) -> list[Approval]:
    store = await stage.podium.store()
    return await store.read(lambda view: view.approvals(statuses=(ApprovalStatus.PENDING,)))


@pytest.mark.soak
@needs_browser
async def test_a_supervised_candidate_approved_on_the_page_reaches_the_inbox_folder(
    tmp_path: Path,
    browser: Browser,
) -> None:
    station = await proposed(tmp_path)
    async with console(tmp_path, environ=station.environ) as stage:
        engine = await stage.podium.hosting_engine()
        async with (
            engine.serve(order_queues(stage.podium.configuration)),
            visitor(browser, stage) as page,
        ):
            await page.goto("/")
            card = page.locator("article", has_text="see to FIX-A")
            assert "append g/reports/daily.md" in await card.inner_text()
            assert "second line" in await card.locator(".diff .add").last.inner_text()
            assert await page.locator("main script, main img").count() == 0
            assert station.files(INBOX) == []
            await refuse_barriers(page)
            await picture(page, "inbox-candidate")
            await card.get_by_role("button", name="Approve").click()
            await card.get_by_text("Approved. Its run continues.").wait_for()

            async def delivered() -> list[str]:
                return [name for name in station.files(INBOX) if name.endswith(".yaml")]

            [name] = await retry_until(delivered) or []
            order = yaml.safe_load(station.read(f"{INBOX}/{name}"))
            assert order["ops"] == [REPORT]


@needs_browser
async def test_an_edited_candidate_is_asked_about_anew_and_only_the_edit_is_delivered(
    tmp_path: Path,
    browser: Browser,
) -> None:
    station = await proposed(tmp_path)
    async with console(tmp_path, environ=station.environ) as stage:
        engine = await stage.podium.hosting_engine()
        [old] = await pending(stage)
        async with (
            engine.serve(order_queues(stage.podium.configuration)),
            visitor(browser, stage) as page,
        ):
            await page.goto("/")
            card = page.locator(f"#card-{old.id}")
            await card.get_by_text("Edit and resubmit").click()
            field = card.get_by_label("The order, as YAML")
            await field.wait_for()
            text = await field.input_value()
            await picture(page, "inbox-editing")
            await field.fill(text.replace("g/reports/daily.md", "../outside.md"))
            await card.get_by_role("button", name="Resubmit").click()
            await page.locator("#said.fault").wait_for()
            assert "cannot be executed" in await page.locator("#said").inner_text()
            assert [entry.id for entry in await pending(stage)] == [old.id]
            await field.fill(text.replace("second line", "another line"))
            await card.get_by_role("button", name="Resubmit").click()
            await card.get_by_text("Edited. Run").wait_for()
            fresh = page.locator("article:not(.done)", has_text="see to FIX-A")
            await fresh.get_by_role("button", name="Approve").wait_for()
            [new] = await pending(stage)
            assert new.digest != old.digest
            assert str(new.arguments["wo_id"]) == f"{old.arguments['wo_id']}-R2"
            assert station.files(INBOX) == []
            await fresh.get_by_role("button", name="Approve").click()

            async def delivered() -> list[str]:
                return [name for name in station.files(INBOX) if name.endswith(".yaml")]

            assert await retry_until(delivered) == [f"{new.arguments['wo_id']}.yaml"]
            assert "another line" in station.read(f"{INBOX}/{new.arguments['wo_id']}.yaml")
        rejected = await approval_now(stage.podium, old.id)
        assert rejected.status is ApprovalStatus.REJECTED
        assert rejected.why == f"edited by sam; continues as {new.run_id}"


@asynccontextmanager
async def office(folder: Path, mail: SmtpServer) -> AsyncIterator[Stage]:
    """A console over a roofing office with records, whose queue is served."""
    settings = {
        "ROOFING_SMTP_HOST": "127.0.0.1",
        "ROOFING_SMTP_PORT": str(mail.port),
        "ROOFING_SMTP_TLS": "none",
        "ROOFING_SMTP_FROM": "office@example.com",
    }
    text = "flows: {operator: {pack: roofing}}\n"
    async with console(folder, yaml=text, environ=settings) as stage:
        intent = OperatorSetup(classifier="embedded", user="ann")
        operator = await build_operator(stage.podium, intent)
        # The first look makes the tables.
        await operator.process("os.health_check", "execute")
        database = stage.podium.folders.state / "packs" / "roofing" / "roofing.db"
        with closing(sqlite3.connect(database)) as records:
            for table, record in _RECORDS:
                _insert(records, table, record)
            records.commit()
        await operator.process("email quote Q-88 to the client", "enqueue")
        engine = await stage.podium.hosting_engine()
        queue = operator_options(stage.podium).queue
        async with engine.serve([QueueSpec(name=queue)]):
            yield stage


@needs_browser
async def test_a_t3_call_approved_on_a_phone_is_made_and_receipted(
    tmp_path: Path, browser: Browser
) -> None:
    async with serving(SmtpServer()) as mail, office(tmp_path, mail) as stage:
        [asked] = await pending(stage)
        assert asked.tier is Tier.T3
        async with visitor(browser, stage, phone=True) as page:
            await page.goto(f"/cards/{asked.id}")
            shown = await page.inner_text("main")
            assert "email.send_quote" in shown
            assert "quote_id: Q-88" in shown
            assert "cannot be undone" in shown
            await refuse_sideways(page)
            await refuse_barriers(page)
            await picture(page, "card-plan-phone")
            assert mail.received == []
            await page.get_by_role("button", name="Approve").click()
            await page.locator(".tag.good").wait_for()

            async def receipts() -> list[Receipt]:
                store = await stage.podium.store()
                return await store.read(lambda view: view.receipts(asked.run_id))

            [receipt] = await retry_until(receipts) or []
        assert (receipt.tool, receipt.status) == ("email.send_quote", "completed")
        assert receipt.approved_by == ("sam",)
        assert [message.recipients for message in mail.received] == [["sarah@example.com"]]


async def test_an_edited_plan_is_checked_by_the_operator_and_asked_about_anew(
    tmp_path: Path,
) -> None:
    headers = {"hx-request": "true"}
    async with (
        serving(SmtpServer()) as mail,
        office(tmp_path, mail) as stage,
        stage.client(**headers) as client,
    ):
        [old] = await pending(stage)
        path = f"/cards/{old.id}/resubmit"
        wrong = ("{", "[]", '{"quote_id": 7}', '{"quote_id": {"$from": [1, "x"]}}', '{"quote_id": "Q-88"}')  # fmt: skip
        for text in wrong:
            answer = await client.post(path, data={"call_1": text})
            assert answer.status_code == 422, text
            assert [entry.id for entry in await pending(stage)] == [old.id]
        edited = await client.post(path, data={"call_1": json.dumps({"quote_id": "Q-90"})})
        assert "requests approval with a new digest" in edited.text
        [new] = await pending(stage)
        assert new.digest != old.digest
        assert new.arguments["calls"][0]["arguments"]["quote_id"] == "Q-90"
        shown = (await client.get(f"/cards/{new.id}")).text
        assert f"edited from {old.id}:" in shown
        assert "1. email.send_quote quote_id: Q-88 → Q-90" in unescape(shown)
        assert "to: sarah@example.com\n  sum: $900.00\n" in shown
        again = await client.post(path, data={"call_1": json.dumps({"quote_id": "Q-1042"})})
        assert "Already rejected by sam" in again.text
        assert [entry.id for entry in await pending(stage)] == [new.id]
        assert mail.received == []


async def test_an_edited_call_of_an_agent_is_a_no_that_says_what_to_ask_for(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client(**{"hx-request": "true"}) as client:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        path = f"/cards/{approval.id}/resubmit"
        assert (
            "request the call again with them"
            in (await client.get(f"/cards/{approval.id}/edit")).text
        )
        for text in ("{}", '{"path": 3, "content": ""}', json.dumps(approval.arguments), "x" * 9):
            answer = await client.post(path, data={"arguments": text})
            assert answer.status_code == 422, text
        wanted = {"path": "b.txt", "content": "hello\n"}
        answer = await client.post(path, data={"arguments": json.dumps(wanted)})
        assert "should request the call again with them" in answer.text
        known = await approval_now(stage.podium, approval.id)
        assert known.status is ApprovalStatus.REJECTED
        assert known.why.startswith("edited by sam. Ask for write_file again")
        assert json.dumps(wanted) in known.why


async def _asking(podium: Podium) -> Flow:
    async def body(ctx: FlowContext, job: Json) -> Json:
        output = await ctx.ask_person("which", "which branch is meant?")
        return {"said": output.payload, "by": output.sent_by}

    return FlowDefinition("asking", body)


@pytest.mark.soak
@needs_browser
async def test_a_run_that_needs_a_person_goes_on_with_their_guidance(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, flows={**flow_builders(), "asking": _asking}) as stage:
        engine = await stage.podium.hosting_engine()
        async with (
            engine.serve([QueueSpec(name="work")]),
            visitor(browser, stage) as page,
        ):
            run = await engine.start("asking", task="tidy up", queue="work")
            await engine.finish(run.id)
            await page.goto("/")
            card = page.locator(f"#card-{run.id}")
            assert "which branch is meant?" in await card.inner_text()
            await card.get_by_label("Guidance for the run").fill("the second")
            await card.get_by_role("button", name="Resume").click()
            await card.get_by_text("Resumed in the console process.").wait_for()
            ended = await engine.finish(run.id)
        assert ended.result == {"said": "the second", "by": "sam"}
