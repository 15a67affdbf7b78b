"""A page whose console has gone says that what it shows may be old."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.integration.web.browser import needs_browser
from tests.integration.web.console_harness import console

LOST = "Live updates are interrupted"


@pytest.mark.soak
@needs_browser
async def test_page_shows_that_its_connection_to_the_console_is_lost(
    tmp_path: Path, browser: Browser
) -> None:
    async with await browser.new_context() as context:
        page = await context.new_page()
        page.set_default_timeout(60_000)
        async with console(tmp_path) as stage:
            await page.goto(f"{stage.url}/login#token={stage.token}")
            await page.get_by_role("heading", name="Inbox").wait_for()
            assert not await page.get_by_text(LOST).is_visible()
        await page.get_by_text(LOST).wait_for()
