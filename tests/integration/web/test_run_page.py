"""A run's page: every part of it, with nothing of an agent's taken for more than words."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from podium.web.access.tokens import ConsoleRole
from podium.web.pages.run import PARTS
from podium.web.pages.run_documents import MAX_LINES, read_diff, rendered
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import console
from tests.integration.web.run_past import DOCUMENT, FILE, SEEN, hostile_branch, hostile_run
from tests.soaking import in_soak

WORDS_BEYOND_THEIR_BOXES = """() => [...document.querySelectorAll(".picture .bar text")].filter((text) => {
    const clip = text.ownerSVGElement, box = text.closest(".bar").querySelector("rect").getBoundingClientRect();
    const seen = clip.getBoundingClientRect(), whole = text.getBoundingClientRect();
    const clips = getComputedStyle(clip).overflow === "hidden";
    return Math.min(whole.right, clips ? seen.right : Infinity) > box.right;
}).map((text) => text.textContent)"""
STRANGE = "#run img, #run script, #run iframe, #run a[href^='javascript' i]"


async def look_at(page: Page, run_id: str, part: str) -> None:
    await page.goto(f"/runs/{run_id}?show={part}")
    await expect(page.locator("#timeline .picture")).to_be_visible()
    await expect(page.locator("#part")).not_to_contain_text("Looking…")


@pytest.mark.parametrize("phone", [False, in_soak(True)])
@needs_browser
async def test_no_word_of_an_agent_becomes_anything_but_text(
    tmp_path: Path, browser: Browser, phone: bool
) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with (
        console(tmp_path) as stage,
        visitor(browser, stage, phone=phone, dark=phone) as page,
    ):
        run_id = await hostile_run(stage.podium, commit)
        await page.goto("/runs")
        await expect(page.locator("#runs")).to_contain_text(SEEN)
        for part in PARTS:
            await look_at(page, run_id, part)
            await expect(page.locator("#head")).to_contain_text(f"failure {SEEN}")
            await expect(page.locator("#part")).to_contain_text(run_id if part == "about" else SEEN)
            assert await page.locator(STRANGE).count() == 0
            assert await page.evaluate("window.hacked") is None
            await picture(page, f"hostile-{part}-{'phone' if phone else 'desktop'}")
            await refuse_barriers(page, within="html" if part == "log" else "#part")
            if phone:
                await refuse_sideways(page)


@pytest.mark.soak
@needs_browser
async def test_a_runs_page_is_used_by_keyboard_and_says_the_picture_in_a_table(
    tmp_path: Path,
    browser: Browser,
) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage, visitor(browser, stage) as page:
        run_id = await hostile_run(stage.podium, commit)
        await look_at(page, run_id, "log")
        assert await page.evaluate(WORDS_BEYOND_THEIR_BOXES) == []
        table = page.locator("#timeline table")
        await page.locator("#timeline summary").focus()
        await page.keyboard.press("Enter")
        await expect(table).to_be_visible()
        await expect(table.locator("tbody tr").nth(3)).to_contain_text("develop")
        await refuse_barriers(page)
        diff = page.get_by_role("link", name="Diff")
        await diff.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#part")).to_contain_text(FILE)
        await expect(page.locator(".diff .added").filter(has_text="new line")).to_have_count(1)
        await expect(page.locator(".diff .gone").filter(has_text="old line")).to_have_count(1)
        await expect(diff).to_have_attribute("aria-current", "true")
        assert page.url.endswith("show=diff")
        await page.get_by_role("link", name="Receipts").click()
        await expect(page.locator("#verdict")).to_have_text("verified")
        await page.get_by_role("link", name="Documents").click()
        await expect(page.locator(".document h3")).to_contain_text("Plan")
        away = page.locator(".document a")
        await expect(away).to_have_attribute("href", "https://example.org/x")


async def test_only_documents_of_the_run_are_read(tmp_path: Path) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage, stage.client() as client:
        run_id = await hostile_run(stage.podium, commit)
        address = f"/runs/{run_id}/part/documents"
        assert (await client.get(address, params={"path": DOCUMENT})).status_code == 200
        for path in ("kept.txt", "../../etc/passwd", "/etc/passwd", "-rf", "\0"):
            assert (await client.get(address, params={"path": path})).status_code == 404


async def test_only_transcripts_of_the_run_are_read(tmp_path: Path) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage, stage.client() as client:
        run_id = await hostile_run(stage.podium, commit)
        replies = stage.podium.folders.state / "runs" / run_id / "replies"
        replies.mkdir(parents=True)
        (replies / "a.jsonl").write_text(f"said {SEEN}\n")
        (replies / "link.jsonl").symlink_to("/etc/passwd")
        address = f"/runs/{run_id}/part/transcript"
        answer = await client.get(address, params={"name": "a.jsonl"})
        assert "said &lt;script&gt;" in answer.text
        assert (await client.get(address, params={"name": "link.jsonl"})).status_code == 409
        for name in ("../../../podium.yaml", "..", "", "/etc/passwd", "\0"):
            assert (await client.get(address, params={"name": name})).status_code == 404


async def test_every_part_of_no_run_is_not_found_and_a_short_id_will_do(tmp_path: Path) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage, stage.client() as client:
        run_id = await hostile_run(stage.podium, commit)
        assert (await client.get(f"/runs/{run_id[-12:-4]}")).status_code == 200
        nobody = "/runs/run_00000000000000000000000000000000"
        addresses = [nobody, f"/live{nobody}", f"{nobody}/lines", f"{nobody}/events.jsonl"]
        for address in (*addresses, *(f"{nobody}/part/{part}" for part in PARTS)):
            assert (await client.get(address)).status_code == 404, address


async def test_lines_are_paged_in_both_directions_and_all_events_can_be_had(
    tmp_path: Path,
) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage, stage.client() as client:
        run_id = await hostile_run(stage.podium, commit)
        older = (await client.get(f"/runs/{run_id}/lines", params={"before": 3})).text
        assert older.count("<li data-seq") == 2
        assert "Older lines" not in older
        newer = (await client.get(f"/runs/{run_id}/lines", params={"after": 10})).text
        assert newer.count("<li data-seq") == 2
        events = (await client.get(f"/runs/{run_id}/events.jsonl")).text.splitlines()
        assert len(events) == 12


async def test_who_only_looks_is_offered_nothing_to_do_and_can_do_nothing(tmp_path: Path) -> None:
    commit = hostile_branch(tmp_path / "project")
    async with console(tmp_path) as stage:
        run_id = await hostile_run(stage.podium, commit)
        token = stage.new_token("vera", ConsoleRole.VIEWER)
        async with stage.client(token) as client:
            assert "hx-post" not in (await client.get(f"/runs/{run_id}")).text
            for act in ("cancel", "resume", "retry"):
                assert (await client.post(f"/runs/{run_id}/{act}")).status_code == 403
            assert (await client.post("/runs", data={"flow": "sense"})).status_code == 403
        async with stage.client() as client:
            assert "hx-post" in (await client.get(f"/runs/{run_id}")).text
            answer = await client.post(f"/runs/{run_id}/retry", data={"from_step": "none"})
            assert answer.status_code == 422
            assert "has no step" in answer.text


def test_a_difference_is_read_file_by_file() -> None:
    text = (
        "diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\n+++ b/a b\n@@ -1 +1 @@\n-old\n+new\n"
        "--- not a header\ndiff --git a/x b/y\nrename from x\n"
    )
    first, second = read_diff(text).files
    assert (first.name, first.added, first.gone) == ("a b", 1, 2)
    assert [tone for tone, _ in first.lines] == ["hunk", "gone", "added", "gone"]
    assert (second.name, second.lines[0]) == ("a/x b/y", ("same", "rename from x"))
    long = read_diff("diff --git a/x b/x\n@@\n" + "+\n" * 5000)
    assert long.cut
    assert long.files[0].added == MAX_LINES - 2


async def test_documents_load_nothing_and_lead_nowhere_unseen() -> None:
    html = await rendered(
        "[a](javascript:x) [b](/runs) [c](https://e.org) ![d](https://e.org/p) <i>e</i>"
    )
    assert "<img" not in html
    assert "<i>" not in html
    assert html.count("<a ") == html.count("</a>") == 1
    assert html.count("<span") == html.count("</span>")
    assert "https://e.org/p" in html


async def test_a_document_that_would_take_long_to_render_is_shown_as_it_is() -> None:
    html = await rendered("[" * 200_000 + "<b>")
    assert html.startswith("<pre>[[")
    assert html.endswith("&lt;b&gt;</pre>")
