"""A real Chromium, driven by Playwright, and where its pictures are kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page, async_playwright

from tests.integration.web.console_harness import Stage

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
_HAS_CHROMIUM = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium here; `apt-get install chromium` brings one"
)
_IN_ITS_LOOP = pytest.mark.asyncio(loop_scope="session")
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
ARTEFACTS = Path(os.environ.get("TEST_ARTEFACTS", "")) if os.environ.get("TEST_ARTEFACTS") else None
"""Where pictures of pages are kept; nowhere unless told."""
SERIOUS = ("serious", "critical")
_AXE = Path(AXE_FILE_PATH).read_text()
# Telling of all that was found to be well costs as much as looking at it.
_VIOLATIONS = """async (within) =>
    (await axe.run(within, {resultTypes: ["violations"]})).violations"""
Test = TypeVar("Test", bound=Callable[..., Awaitable[None]])


def needs_browser(test: Test) -> Test:
    """Run the test in the loop that its fixture `browser` lives in, or skip it where there is none."""
    marked: Test = _HAS_CHROMIUM(_IN_ITS_LOOP(test))
    return marked


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def visitor(
    browser: Browser,
    stage: Stage,
    *,
    token: str | None = None,
    phone: bool = False,
    dark: bool = False,
) -> AsyncIterator[Page]:
    """A person who has come in. What a page logs as an error, or throws, fails the test at the end."""
    context = await browser.new_context(
        viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]  # a TypedDict of just these
        is_mobile=phone,
        has_touch=phone,
        color_scheme="dark" if dark else "light",
        base_url=stage.url,
    )
    try:
        context.set_default_timeout(60_000)
        page = await context.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console", lambda text: troubles.append(text.text) if text.type == "error" else None
        )
        await page.goto(f"/login#token={stage.token if token is None else token}")
        await page.wait_for_url(lambda url: "/login" not in url)
        yield page
        # A status that says why something was not done is told on the page, and logged by the browser too.
        assert [
            words for words in troubles if not re.search(r"(status of|Error Code) 4\d\d", words)
        ] == []
    finally:
        await context.close()


async def picture(page: Page, name: str) -> None:
    """Keep a picture of the page, where somebody will look at it."""
    if ARTEFACTS is not None:
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        # Hiding the caret is done by an inline style, which the page's own policy refuses and logs.
        await page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True, caret="initial")


async def stop_timers(page: Page) -> None:
    """From here on nothing on its pages comes of time that passes: what is shown anew was told to them."""
    await page.clock.install(time=0)
    await page.clock.pause_at(1)


async def refuse_barriers(page: Page, *, within: str = "html") -> None:
    """Fail for what keeps people out, by axe-core: nothing serious may be found.

    `within` leaves out what the same page has around it, where that was looked at before.
    """
    # Not by a script element, which the page's own policy would rightly refuse.
    await page.evaluate(_AXE)
    violations = await page.evaluate(_VIOLATIONS, within)
    text = [
        f"{violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes'][:3]]}"
        for violation in violations
        if violation["impact"] in SERIOUS
    ]
    assert text == [], "\n".join(text)


async def refuse_sideways(page: Page) -> None:
    """Fail when the page is wider than the screen."""
    wide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{page.url} is {wide} pixels wider than the screen"
