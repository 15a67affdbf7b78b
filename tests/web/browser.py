"""A real Chromium, driven by Playwright, and where its pictures are kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page, async_playwright

from tests.web.stage import Stage

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium here; `apt-get install chromium` brings one"
)
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
ARTEFACTS = Path(os.environ.get("TEST_ARTEFACTS", "")) if os.environ.get("TEST_ARTEFACTS") else None
"""Where pictures of pages are kept; nowhere unless told."""
SERIOUS = ("serious", "critical")


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
    context.set_default_timeout(60_000)
    page = await context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    await page.goto(f"/login#token={stage.token if token is None else token}")
    await page.wait_for_url(lambda url: "/login" not in url)
    try:
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


async def refuse_barriers(page: Page) -> None:
    """Fail for what keeps people out, by axe-core: nothing serious may be found."""
    source = Path(AXE_FILE_PATH).read_text()
    # Not by a script element, which the page's own policy would rightly refuse.
    await page.evaluate(source)
    found = await page.evaluate("axe.run()")
    told = [
        f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
    ]
    assert told == []


async def refuse_sideways(page: Page) -> None:
    """Fail when the page is wider than the screen."""
    wide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{page.url} is {wide} pixels wider than the screen"
