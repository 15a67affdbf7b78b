"""The sense page: what the loop saw and proposes, one click to deploy, and a person's word about trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from podium.app.approvals import reject
from podium.core.decisions import Tier
from podium.jobs.sense.composition import current_trust, trust_of
from podium.jobs.sense.io.record import last_ticks
from podium.jobs.sense.trust import TrustEntry
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
from tests.unit.sense.sense_harness import HEALTH, INBOX, REPORT, Station, item, plan

EVIL = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


def hostile(hint: str) -> dict[str, Any]:
    """An item whose words would be a program, were they taken for one."""
    found = item(hint, {**REPORT, "content": f"{EVIL}\n"}, target=f"api{EVIL}")
    found["wo_suggestion"]["title"] = f"see to {hint} {EVIL}"
    return found


async def ticked(folder: Path, **options: Any) -> Station:
    """A root after two plans and an idle tick: the first proposed FIX-A, the second FIX-B beside it."""
    plans = [plan(item("FIX-A", REPORT)), plan(item("FIX-A", REPORT), hostile("FIX-B"))]
    station = Station(folder, plans, mode="supervised", **options)
    async with station.open() as post:
        await post.tick()
        station.write(HEALTH, '{"status": "degraded"}')
        await post.tick()
        await post.tick()
    return station


def granted(stage: Stage) -> dict[str, Tier | None]:
    return {entry.zone: entry.granted for entry in current_trust(stage.podium)}


@needs_browser
async def test_a_candidate_is_deployed_with_one_click_and_the_next_rejected_with_a_reason(
    tmp_path: Path,
    browser: Browser,
) -> None:
    station = await ticked(tmp_path)
    async with (
        console(tmp_path, environ=station.environ) as stage,
        visitor(browser, stage) as page,
    ):
        await page.goto("/sense")
        shown = await page.inner_text("main")
        assert EVIL in shown
        assert await page.title() != "owned"
        assert "1 of 3" in shown  # idle ticks
        assert "new: create_wo" in shown
        assert "FIX-B" in shown
        await picture(page, "sense")
        await refuse_barriers(page)
        card = page.locator("article", has_text="see to FIX-A")
        await card.get_by_role("button", name="Deploy").click()
        await page.get_by_text("Approved:").wait_for()
        delivered = station.files(INBOX)
        assert len(delivered) == 1
        assert delivered[0].startswith("WO-FIX-A")
        card = page.locator("article", has_text="see to FIX-B")
        await card.get_by_text("Reject…").click()
        await card.get_by_label("Reason").fill(f"not today {EVIL}")
        await card.get_by_role("button", name="Reject").click()
        await page.get_by_text("Rejected. It will not be delivered").wait_for()
        assert await card.get_by_role("button", name="Deploy").count() == 0
        await card.get_by_text("Rejected: the order will not be delivered").wait_for()
        assert station.files(INBOX) == delivered
        await picture(page, "sense-answered")


@pytest.mark.soak
@needs_browser
async def test_trust_is_given_and_taken_back_on_a_phone_in_the_dark(
    tmp_path: Path, browser: Browser
) -> None:
    station = await ticked(tmp_path, promote_after=1)
    async with (
        console(tmp_path, environ=station.environ) as stage,
        visitor(browser, stage, phone=True, dark=True) as page,
    ):
        zone = f"g/<b>{EVIL}</b>"
        entry = TrustEntry(
            kind="agreed", target="api", zone=zone, wo_id="WO-1", at=stage.podium.clock.now()
        )
        trust_of(stage.podium).add(entry)
        page.on("dialog", lambda dialog: dialog.accept())
        await page.goto("/sense")
        await picture(page, "sense-phone-dark")
        await refuse_sideways(page)
        await refuse_barriers(page)
        await page.get_by_role("button", name="Promote to T1").click()
        await page.get_by_text("up to T1 are delivered without approval").wait_for()
        assert granted(stage)[zone] is Tier.T1
        await page.get_by_role("button", name="Demote").click()
        await page.get_by_text("needs approval again").wait_for()
        assert granted(stage)[zone] is None
        await refuse_sideways(page)


@pytest.mark.soak
@needs_browser
async def test_a_page_that_is_open_shows_an_idle_tick_and_an_answer_given_elsewhere(
    tmp_path: Path,
    browser: Browser,
) -> None:
    station = await ticked(tmp_path)
    async with (
        console(tmp_path, environ=station.environ) as stage,
        visitor(browser, stage) as page,
    ):
        await stop_timers(page)
        await page.goto("/sense")
        await page.get_by_text("1 of 3").wait_for()
        async with station.open() as post:
            await post.tick()
        await page.get_by_text("2 of 4").wait_for()
        store = await stage.podium.store()
        asked = (await store.read(lambda view: view.approvals()))[0]
        podium = stage.podium
        await reject(store, podium.clock, podium.ids, asked.id, by="ann", why="not today")
        await page.get_by_text("Rejected: the order will not be delivered").wait_for()


@pytest.mark.soak
@needs_browser
async def test_what_somebody_types_stays_until_it_is_sent_and_what_was_missed_is_shown_then(
    tmp_path: Path,
    browser: Browser,
) -> None:
    station = await ticked(tmp_path)
    async with (
        console(tmp_path, environ=station.environ) as stage,
        visitor(browser, stage) as page,
    ):
        await page.goto("/sense")
        card = page.locator("article", has_text="see to FIX-A")
        await card.get_by_text("Reject…").click()
        await card.get_by_label("Reason").fill("not today")
        await card.get_by_label("Reason").blur()
        await page.evaluate("document.getElementById('sense').missed = false")
        async with station.open() as post:
            await post.tick()
        await page.wait_for_function("() => document.getElementById('sense').missed")
        assert await card.get_by_label("Reason").input_value() == "not today"
        await card.get_by_label("Reason").fill("")
        await card.get_by_label("Reason").blur()
        await page.get_by_text("2 of 4").wait_for()


async def test_a_yes_is_for_what_the_page_showed_and_only_an_approvers(tmp_path: Path) -> None:
    station = await ticked(tmp_path)
    async with console(tmp_path, environ=station.environ) as stage:
        viewer = stage.new_token("vera", ConsoleRole.OPERATOR)
        async with stage.client() as client, stage.client(viewer) as other:
            store = await stage.podium.store()
            asked = (await store.read(lambda view: view.approvals()))[0]
            body = {"candidate": asked.run_id, "asked": asked.id}
            assert (await other.post("/sense/deploy", data=body)).status_code == 403
            assert (await other.post("/sense/promote", data={"target": "a", "zone": "b"})).status_code == 403  # fmt: skip
            assert "Deploy" not in (await other.get("/sense")).text
            answer = await client.post("/sense/deploy", data={**body, "asked": "appr_another"})
            assert answer.status_code == 409
            assert "changed after the page was loaded" in answer.text
            answer = await client.post("/sense/reject", data={"asked": asked.id, "why": " "})
            assert answer.status_code == 422
            unearned = {"target": "api", "zone": "g/reports"}
            assert (await client.post("/sense/promote", data=unearned)).status_code == 403
            assert station.files(INBOX) == []


async def test_a_root_that_never_ticked_has_a_page_all_the_same(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        shown = (await client.get("/sense")).text
        assert "No tick yet" in shown
        assert "not running" in shown


async def test_lines_of_others_in_the_telemetry_are_passed_over(tmp_path: Path) -> None:
    station = await ticked(tmp_path)
    place = "g/telemetry/gmx_clc_orch.jsonl"
    lines = station.read(place)
    station.write(
        place, f'{lines}[1, 2]\n{{"event": "tick"}}\n\udcff'.encode(errors="replace").decode()
    )
    assert [tick.tick for tick in last_ticks(station.root, place)] == [3, 2, 1]
    assert [tick.tick for tick in last_ticks(station.root, place, most=1)] == [3]
    assert last_ticks(station.root, "g/nothing.jsonl") == ()


async def test_missing_planner_is_not_reported_as_having_found_nothing(tmp_path: Path) -> None:
    station = Station(tmp_path, [], mode="supervised", planner="none")
    async with station.open() as post:
        await post.tick()
    async with console(tmp_path, environ=station.environ) as stage, stage.client() as client:
        shown = (await client.get("/sense")).text
    assert "found nothing to do" not in shown
    assert "no plan was made: the planner is missing" in shown
    assert "nothing to do" not in shown
