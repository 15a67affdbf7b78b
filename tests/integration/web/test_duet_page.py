"""The duet in a real browser, while real panes work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from podium.testing import retry_until
from podium.web.access.tokens import ConsoleRole
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.terminals import Terminals, duet_terminals
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import Stage, console

expect.set_options(timeout=60_000)


@dataclass
class Harness:
    """A pair on tmux, a console over its project, and a browser."""

    duet_terminals: Terminals
    stage: Stage
    browser: Browser

    async def duet(self, *arguments: str) -> str:
        result = await asyncio.to_thread(self.duet_terminals.duet, *arguments)
        assert result.code == 0, result.err
        return result.out

    def took(self, side: str) -> int:
        return len(self.duet_terminals.happened(side, "took"))


@asynccontextmanager
async def harness(folder: Path, browser: Browser, **cast: object) -> AsyncIterator[Harness]:
    """The pair is up."""
    with duet_terminals(CommandRunner(folder)) as pair:
        pair.cast(**cast)  # type: ignore[arg-type]
        result = await asyncio.to_thread(pair.duet, "up", "--grant")
        assert result.code == 0, result.err
        async with console(folder, environ=pair.variables) as stage:
            yield Harness(pair, stage, browser)


def pane(page: Page, side: str) -> str:
    return f"[data-pane='main/{side}']"


async def shows(page: Page, side: str, words: str) -> None:
    # A terminal paints what can be seen of it: on a phone one scrolls to the second pane.
    await page.locator(f"{pane(page, side)} .screen").scroll_into_view_if_needed()
    await expect(page.locator(f"{pane(page, side)} .xterm-rows")).to_contain_text(
        words, timeout=60_000
    )


@pytest.mark.soak
@needs_browser
async def test_both_panes_and_the_messages_between_them_are_seen_while_a_task_is_done(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with harness(tmp_path, browser) as here, visitor(here.browser, here.stage) as page:
        await page.goto("/duet")
        await expect(page.locator("[data-keyboard]")).to_have_text(["Podium has the keyboard"] * 2)
        sending = here.duet_terminals.begin("send", "tidy <b>up</b>")
        await shows(page, "planner", "POLI:MSG")
        await shows(page, "executer", "POLI:MSG")
        rungs = page.locator(".ladder .rung")
        await expect(rungs.filter(has_text="plan")).not_to_have_count(0)
        await expect(page.locator(".rung.from-executer.to-planner")).to_contain_text("result")
        await expect(page.locator(".rung.from-planner.to-user")).to_contain_text("report")
        assert await asyncio.to_thread(sending.wait, 120) == 0
        await expect(page.locator("#duet-state td .tag").first).to_have_text("succeeded")
        await expect(page.locator("#duet-state")).to_contain_text("tidy <b>up</b>")
        await refuse_barriers(page)
        await refuse_sideways(page)
        await picture(page, "duet-desktop")
        async with visitor(here.browser, here.stage, phone=True, dark=True) as phone:
            await phone.goto("/duet")
            await shows(phone, "executer", "POLI:MSG")
            await expect(phone.locator(".rung.from-planner.to-user")).to_contain_text("report")
            await refuse_sideways(phone)
            await refuse_barriers(phone)
            await picture(phone, "duet-phone")


@pytest.mark.soak
@needs_browser
async def test_whoever_takes_the_keyboard_types_and_what_podium_has_to_say_waits_and_goes_once(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with harness(tmp_path, browser) as here, visitor(here.browser, here.stage) as page:
        await page.goto("/duet")
        planner = page.locator(pane(page, "planner"))
        await planner.get_by_role("button", name="Take the keyboard").click()
        await expect(planner.locator("[data-keyboard]")).to_have_text("you have the keyboard")
        sending = here.duet_terminals.begin("send", "tidy up")
        await expect(page.locator("#duet-state td .tag").first).to_have_text("running")
        await page.keyboard.type("my own words")
        await shows(page, "planner", "my own words")
        assert here.took("PLANNER") == 1, "the task went in beside a person's words"
        await picture(page, "duet-keyboard")
        for _ in "my own words":
            await page.keyboard.press("Backspace")
        await expect(planner.locator(".xterm-rows")).not_to_contain_text("my own words")
        await page.keyboard.press("Control+]")
        focused = await page.evaluate("document.activeElement.textContent")
        assert focused.startswith("Return the keyboard")
        await page.keyboard.press("Enter")
        await expect(planner.locator("[data-keyboard]")).to_have_text("Podium has the keyboard")
        assert await asyncio.to_thread(sending.wait, 120) == 0
        assert (here.took("PLANNER"), here.took("EXECUTER")) == (3, 2)
        ladder = page.locator(".ladder")
        await expect(ladder).to_contain_text("keyboard returned of PLANNER by sam")
        await refuse_barriers(page)


@pytest.mark.soak
@needs_browser
async def test_of_two_browsers_one_has_the_keyboard_and_the_other_is_notified(
    tmp_path: Path, browser: Browser
) -> None:
    async with harness(tmp_path, browser) as here:
        bob = here.stage.new_token("bob", ConsoleRole.OPERATOR)
        eve = here.stage.new_token("eve", ConsoleRole.VIEWER)
        async with (
            visitor(here.browser, here.stage) as one,
            visitor(here.browser, here.stage, token=bob) as other,
            visitor(here.browser, here.stage, token=eve) as looker,
        ):
            for page in (one, other, looker):
                await page.goto("/duet")
            takes = [page.locator(f"{pane(page, 'executer')} [data-take]") for page in (one, other)]
            for take in takes:
                await expect(take).to_be_enabled()
            await takes[0].click()
            tag = f"{pane(other, 'executer')} [data-keyboard]"
            await expect(other.locator(tag)).to_have_text("sam has the keyboard")
            await expect(looker.locator(tag)).to_have_text("sam has the keyboard")
            await expect(takes[1]).to_be_disabled()
            assert await looker.locator("[data-take], form[action^='/duet']").count() == 0
            # Reloading the page is no leaving.
            await one.reload()
            await expect(one.locator(tag)).to_have_text("you have the keyboard")


@needs_browser
async def test_what_a_program_writes_does_nothing_to_the_browser(
    tmp_path: Path, browser: Browser
) -> None:
    async with harness(tmp_path, browser) as here, visitor(here.browser, here.stage) as page:
        await page.goto("/duet")
        title = await page.title()
        hostile = here.duet_terminals.short / "hostile.sh"
        hostile.write_text(
            "printf '\\033]0;stolen title\\007\\033]52;c;c3RvbGVu\\007'\n"
            "printf '\\033]8;;javascript:alert(1)\\033\\\\a link\\033]8;;\\033\\\\'\n"
            "printf '<img src=x onerror=alert(2)><script>alert(3)</script>\\033[6n\\n'\n"
            "printf '\\033[38;2;1;200;3mgreen\\033[0m\\n'; sleep 600\n"
        )
        messages: list[str] = []
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        await run_in_pane(here, "executer", hostile)
        await shows(page, "executer", "<script>alert(3)</script>")
        await shows(page, "executer", "green")
        assert await page.title() == title
        assert await page.locator(".xterm a, .screen img, .screen script").count() == 0
        assert messages == []
        await picture(page, "duet-hostile")


async def run_in_pane(here: Harness, side: str, script: Path) -> None:
    """Another program in the place of the pair's own."""
    import os
    import subprocess

    socket = here.duet_terminals.short / f"tmux-{os.getuid()}" / "poli"
    number = {"planner": 0, "executer": 1}[side]
    asked = ["tmux", "-S", str(socket), "respawn-pane", "-k", "-t", f"main:0.{number}"]
    await asyncio.to_thread(
        subprocess.run, [*asked, "sh", str(script)], timeout=60, check=True, capture_output=True
    )


@pytest.mark.soak
@needs_browser
async def test_a_task_is_handed_on_aborted_and_retried_from_the_page(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        harness(tmp_path, browser, ways=("stuck", "plain", "plain")) as here,
        visitor(here.browser, here.stage) as page,
    ):
        await page.goto("/duet")
        await page.get_by_label("Task", exact=True).fill("tidy up")
        await page.get_by_role("button", name="Send to the planner").click()
        worker = here.duet_terminals.start("worker", "--queue", "duet")
        try:
            await retry_until(lambda: here.took("PLANNER") == 2)
            await page.get_by_role("button", name="Abort").click()
            await expect(page.locator("#duet-state td .tag").first).to_have_text("cancelled")
            await page.get_by_role("button", name="Retry").click()
            await expect(page.locator("#duet-state td .tag").first).to_have_text("succeeded")
        finally:
            worker.terminate()
            await asyncio.to_thread(worker.wait)
