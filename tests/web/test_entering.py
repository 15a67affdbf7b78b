"""Coming in: by token, by link, and not at all."""

from __future__ import annotations

from pathlib import Path

from tests.web.browser import chromium, needs_browser, picture, refuse_barriers, visitor
from tests.web.stage import console


async def test_nobody_comes_in_without_a_token(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        assert (await client.get("/login")).status_code == 200
        answer = await client.post("/login", data={"token": "pod_wrong"})
        assert answer.status_code == 401
        assert "not known" in answer.text


@needs_browser
async def test_a_link_with_the_token_in_its_fragment_lets_a_browser_in(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, chromium() as browser, visitor(browser, stage) as page:
        assert "token" not in page.url
        await page.goto("/login")
        await picture(page, "login")
        await refuse_barriers(page)
