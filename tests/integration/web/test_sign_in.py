"""Coming in: by token, by link, and not at all."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser

from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import console


async def test_nobody_comes_in_without_a_token(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        assert (await client.get("/login")).status_code == 200
        answer = await client.post("/login", data={"token": "pod_wrong"})
        assert answer.status_code == 401
        assert "unknown" in answer.text


@needs_browser
async def test_a_link_with_the_token_in_its_fragment_lets_a_browser_in(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        async with visitor(browser, stage) as page:
            assert "token" not in page.url
            await page.goto("/login")
            await picture(page, "login")
            await refuse_barriers(page)
            await page.get_by_role("button", name="Sign out").click()
            await page.wait_for_url("**/login")
            assert not await page.get_by_role("navigation").count()
            # Whoever asks for a page comes to it once they are in.
            await page.goto("/runs")
            assert page.url.endswith("/login?to=/runs")
            await page.get_by_label("Token").fill("pod_wrong")
            await page.get_by_role("button", name="Sign in").click()
            await page.get_by_role("alert").wait_for()
            await page.get_by_label("Token").fill(stage.token)
            await page.get_by_role("button", name="Sign in").click()
            await page.wait_for_url("**/runs")
        async with visitor(browser, stage, phone=True, dark=True) as page:
            for path, name in (("/login", "login-phone"), ("/nothing", "fault-phone")):
                await page.goto(path)
                await picture(page, name)
                await refuse_barriers(page)
                await refuse_sideways(page)
