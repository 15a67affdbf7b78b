"""The operator's page: words become a plan, a yes releases exactly it, receipts stream in, and one takes it back."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from podium.core.work import QueueSpec
from podium.jobs.operator.composition import operator_options
from podium.web.access.tokens import ConsoleRole
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    stop_timers,
    visitor,
)
from tests.integration.web.console_harness import Stage, console
from tests.unit.operator.messages import QUOTE
from tests.unit.operator.office import _RECORDS, _insert

PATIENT_MS = 60_000
BLOCKS = ("[INTENT]", "[TOOL IMPACT]", "[RISKS / GATES]", "[NEXT ACTIONS]")
EVIL = "<script>document.title='owned'</script>"
LEAD = "new lead: Sarah 0400123456 in Clayton"
FINAL = f"finalize quote {QUOTE}"


@asynccontextmanager
async def office(folder: Path) -> AsyncIterator[Stage]:
    """A console over a roofing office whose queue is served."""
    async with console(folder, yaml="flows: {operator: {pack: roofing}}\n") as stage:
        engine = await stage.podium.hosting_engine()
        queue = operator_options(stage.podium).queue
        async with engine.serve([QueueSpec(name=queue)]):
            yield stage


def furnish(stage: Stage) -> None:
    """One record of each kind, where the first call has made the tables."""
    database = stage.podium.folders.state / "packs" / "roofing" / "roofing.db"
    with closing(sqlite3.connect(database)) as records:
        for table, record in _RECORDS:
            _insert(records, table, record)
        records.commit()


async def say(page: Page, words: str, mode: str) -> None:
    await page.get_by_label("Request, in plain language").fill(words)
    await page.get_by_label(mode).check()
    await page.get_by_role("button", name="Ask", exact=True).click()
    await page.locator(".answer h2", has_text=words[:40]).wait_for()


@needs_browser
async def test_words_are_planned_approved_done_proved_and_taken_back(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        office(tmp_path) as stage,
        visitor(browser, stage) as page,
    ):
        await page.goto("/operator")
        await say(page, LEAD, "Analyze only")
        for title in (*BLOCKS, "[PLAN]"):
            assert title in await page.inner_text("#answer")
        await picture(page, "operator-understood")
        await refuse_barriers(page)
        await page.locator("#answer").get_by_role("button", name="Show the full plan").click()
        await page.get_by_text("verify: SELECT").wait_for()
        await page.locator("#answer button.main").click()
        done = page.locator("#receipts + table .tag.good")
        await expect(done.first).to_be_visible(timeout=PATIENT_MS)
        await expect(page.get_by_text("verified", exact=True)).to_be_visible(timeout=PATIENT_MS)
        await picture(page, "operator-done")
        furnish(stage)
        await say(page, FINAL, "Run it")
        await page.get_by_role("button", name="Approve").wait_for()
        await picture(page, "operator-asked")
        await refuse_barriers(page)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("[RESULT]")).to_be_visible(timeout=PATIENT_MS)
        await page.get_by_role("button", name="Undo 1…").click()
        await page.locator(".answer h2", has_text="undo receipt").wait_for()
        await picture(page, "operator-undo")
        await page.get_by_role("button", name="Request approval of this plan").click()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("[RESULT]")).to_be_visible(timeout=PATIENT_MS)
        await expect(page.locator("aside")).to_contain_text(FINAL, timeout=PATIENT_MS)


@pytest.mark.soak
@needs_browser
async def test_what_is_missing_is_filled_in_on_a_phone_and_nothing_in_it_is_taken_for_a_page(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with (
        office(tmp_path) as stage,
        visitor(browser, stage, phone=True, dark=True) as page,
    ):
        await page.goto("/operator")
        await say(page, f"create a lead for {EVIL}", "Analyze only")
        await picture(page, "operator-phone-dark")
        await refuse_sideways(page)
        await refuse_barriers(page)
        assert EVIL in await page.inner_text("#answer")
        assert await page.title() != "owned"
        await say(page, "finalize the quote", "Show the full plan")
        field = page.get_by_label("quote_id")
        await field.fill(QUOTE)
        await page.get_by_role("button", name="Ask again").click()
        await page.get_by_text(f"quote_id={QUOTE}").wait_for()
        await refuse_sideways(page)


@pytest.mark.soak
@needs_browser
async def test_work_done_by_somebody_else_appears_next_to_an_open_page(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        office(tmp_path) as stage,
        visitor(browser, stage) as page,
        stage.client() as other,
    ):
        await stop_timers(page)
        await page.goto("/operator")
        await expect(page.locator("aside")).to_contain_text("No runs yet")
        await other.post("/operator/ask", data={"text": LEAD, "mode": "enqueue"})
        await expect(page.locator("aside .tag")).to_have_text("succeeded", timeout=PATIENT_MS)


async def test_only_operators_ask_and_a_yes_is_no_message(tmp_path: Path) -> None:
    async with console(tmp_path, yaml="flows: {operator: {pack: roofing}}\n") as stage:
        viewer = stage.new_token("vera", ConsoleRole.APPROVER)
        async with stage.client() as client, stage.client(viewer) as other:
            payload = {"text": LEAD, "mode": "plan"}
            assert (await other.post("/operator/ask", data=payload)).status_code == 403
            assert "can only view" in (await other.get("/operator")).text
            for wrong in ({**payload, "mode": "execute"}, {**payload, "text": "APPROVE: apr_1"}):
                assert (await client.post("/operator/ask", data=wrong)).status_code == 422
            broken = await client.post("/operator/ask", data={**payload, "known.images": "{"})
            assert broken.status_code == 422
            assert "not JSON" in broken.text
            assert (await client.get("/operator/run_nothing")).status_code == 404
            assert (await client.get("/live/operator/run_nothing")).status_code == 404
            undone = await client.post("/operator/undo", data={"receipt": "nothing"})
            assert undone.status_code == 422
            nobody = await client.post("/operator/ask", data={**payload, "mode": "enqueue"})
            assert "no worker is running" in nobody.text
