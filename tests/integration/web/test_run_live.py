"""A run followed in a browser while its process is killed and another one goes on with it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from podium.app.app import open_podium
from podium.app.flow_registry import flow_builders
from podium.app.run_timeline import log_after
from podium.config.configuration import load_configuration
from podium.core.work import RunStatus
from podium.testing import retry_until
from podium.web.pages.run_live import board_of
from tests.integration.web.browser import needs_browser, picture, refuse_barriers, visitor
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.run_program import BEGUN, LET_GO, NAME, build

WITH_HELD = {**flow_builders(), NAME: build}
ROOT = Path(__file__).parents[3]
PATIENCE_MILLISECONDS = 90_000


def environ(folder: Path) -> dict[str, str]:
    home = str(folder / "home")
    return {"PATH": os.environ["PATH"], "HOME": home, "PODIUM_HOME": home, "PODIUM_USER": "sam"}


async def waiting_run(folder: Path) -> str:
    """A run that was told to go on, and that nobody hosts."""
    project = folder / "project"
    project.mkdir()
    (project / "podium.yaml").write_text("{}\n")
    configuration = load_configuration(environ(folder), project=project)
    async with open_podium(configuration, environ(folder), flows=WITH_HELD) as podium:
        engine = await podium.hosting_engine()
        run = await engine.start(NAME, task="Hold the line")
        run = await engine.finish(run.id, stop_when_waiting=True)
        assert run.status is RunStatus.WAITING
        await engine.signal(run.id, "go")
    return run.id


@asynccontextmanager
async def hosting(folder: Path, run_id: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`podium resume RUN` in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.web.run_program", "--project", str(folder / "project"),
        "resume", run_id,
        cwd=ROOT,
        env=environ(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def shows(page: Page, state: str) -> None:
    await expect(page.locator("#state")).to_have_text(state, timeout=PATIENCE_MILLISECONDS)


async def lines(page: Page) -> list[int]:
    seqs = await page.locator("#log li[data-seq]").evaluate_all(
        "lines => lines.map(line => Number(line.dataset.seq))"
    )
    return [int(seq) for seq in seqs]


@pytest.mark.soak
@needs_browser
async def test_a_killed_run_is_shown_interrupted_then_running_then_succeeded_without_a_reload(
    tmp_path: Path,
    browser: Browser,
) -> None:
    run_id = await waiting_run(tmp_path)
    begun, let_go = tmp_path / "project" / BEGUN, tmp_path / "project" / LET_GO
    async with (
        console(tmp_path, flows=WITH_HELD) as stage,
        visitor(browser, stage) as page,
        visitor(browser, stage) as list_page,
    ):
        await list_page.goto("/runs")
        await page.goto(f"/runs/{run_id[-12:]}")
        await shows(page, "waiting")
        await page.evaluate("window.notReloaded = true")
        async with hosting(tmp_path, run_id) as host:
            await retry_until(begun.exists)
            await shows(page, "running")
            await expect(page.locator("#log")).to_contain_text("note 19")
            host.kill()
            await host.wait()
        await shows(page, "interrupted")
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        in_list = list_page.locator(f"#{run_id} .tag")
        await expect(in_list).to_have_text("interrupted", timeout=PATIENCE_MILLISECONDS)
        await picture(page, "run-interrupted")
        await refuse_barriers(page)
        begun.unlink()
        async with hosting(tmp_path, run_id) as host:
            await retry_until(begun.exists)
            await shows(page, "running")
            let_go.touch()
            assert await asyncio.wait_for(host.wait(), 120) == 0
        await shows(page, "succeeded")
        await expect(in_list).to_have_text("succeeded", timeout=PATIENCE_MILLISECONDS)
        store = await stage.podium.store()
        kept = [event.seq for event in await log_after(store, run_id, 0, 1000)]
        await expect(page.locator("#log li[data-seq]")).to_have_count(len(kept))
        assert await lines(page) == kept == list(range(1, len(kept) + 1))
        await expect(page.locator("#timeline")).to_contain_text("resumed")
        assert await page.evaluate("window.notReloaded") is True
        await picture(page, "run-after-the-kill")


@needs_browser
async def test_a_run_that_nobody_hosts_is_resumed_from_its_page(
    tmp_path: Path, browser: Browser
) -> None:
    run_id = await waiting_run(tmp_path)
    (tmp_path / "project" / LET_GO).touch()
    async with (
        console(tmp_path, flows=WITH_HELD) as stage,
        visitor(browser, stage) as page,
    ):
        await page.goto(f"/runs/{run_id}?show=talk")
        await page.get_by_role("button", name="Resume").click()
        await shows(page, "succeeded")
        # Lines that came while something else was shown are there when the log is looked at again.
        await page.get_by_role("link", name="Log").click()
        await expect(page.locator("#log")).to_contain_text("run succeeded")
        seqs = await lines(page)
        assert seqs == list(range(1, len(seqs) + 1))


async def test_many_who_look_at_a_run_at_once_have_it_read_once(tmp_path: Path) -> None:
    run_id = await waiting_run(tmp_path)
    async with console(tmp_path, flows=WITH_HELD) as stage:
        one = await _reads(stage, run_id, 1)
        assert await _reads(stage, run_id, 50) <= one


async def _reads(stage: Stage, run_id: str, followers: int) -> int:
    """Return how often the store was read for so many followers."""
    store = await stage.podium.store()
    reads, read = 0, store.read

    async def counted(work: object) -> object:
        nonlocal reads
        reads += 1
        return await read(work)  # type: ignore[arg-type]

    board = board_of(stage.context)
    store.read = counted  # type: ignore[assignment, method-assign]  # only counts
    try:
        looks = [board.look(run_id, may_act=False) for _ in range(followers)]
        shown = await asyncio.gather(*looks)
    finally:
        store.read = read  # type: ignore[method-assign]
    assert len({item.made_at for item in shown}) == 1
    return reads
