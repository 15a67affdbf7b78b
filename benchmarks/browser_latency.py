"""A run's page in a real browser: how soon it shows an event that another process wrote."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Page

from benchmarks.figures import Figure, median, percentile
from podium.core.events import NoteTaken
from podium.platform.system_clock import SystemClock, SystemIds
from podium.store import SqlStore
from podium.testing import retry_until
from tests.integration.web.browser import CHROMIUM, chromium

EVENTS = 100
WARMING = 5
PAUSE_SECONDS = 0.05
"""Between events, so that each is told by itself."""
PATIENT_SECONDS = 60.0
MARK = "shown-"

_WATCH = """mark => {
    window.shownAt = {};
    const look = node => {
        for (const [found] of (node.textContent || "").matchAll(new RegExp(mark + "\\\\d+", "g"))) {
            window.shownAt[found] = window.shownAt[found] || Date.now();
        }
    };
    new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(look)))
        .observe(document.getElementById("log"), {childList: true, subtree: true});
}"""
"""Notes the time at which each line is part of the page. The browser has this machine's clock."""


async def shown_live(
    project: Path, environ: Mapping[str, str], token: str, run_id: str
) -> list[Figure]:
    """From the moment at which an event is handed to the store until the page has its line.

    Console, browser and this process, which writes, share nothing but the machine.
    """
    if not CHROMIUM:
        print("skipping the page in a browser: Chromium is not installed")
        return []
    async with _serving(project, environ) as url, chromium() as browser:
        page = await browser.new_page()
        await page.goto(f"{url}/login#token={token}")
        await page.wait_for_url(lambda address: "/login" not in address)
        async with page.expect_response(lambda answer: "/live/runs/" in answer.url):
            await page.goto(f"{url}/runs/{run_id}")
        await page.evaluate(_WATCH, MARK)
        taken = await _taken(page, project / ".podium", run_id)
    return [
        Figure("event to a page in Chromium, p50", median(taken), "ms", most=150.0),
        Figure("the same, p99", percentile(taken, 0.99), "ms"),
    ]


async def _taken(page: Page, state: Path, run_id: str) -> list[float]:
    """Milliseconds of each event."""
    store = await SqlStore.open(state, clock=SystemClock(), ids=SystemIds())
    taken = []
    try:
        for number in range(WARMING + EVENTS):
            body = NoteTaken(text=f"{MARK}{number}")
            begun = time.time() * 1000
            await store.write(lambda tx, body=body: tx.append(run_id, body))  # type: ignore[misc]
            taken.append(await _shown_at(page, f"{MARK}{number}") - begun)
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await store.close()
    return taken[WARMING:]


async def _shown_at(page: Page, words: str) -> float:
    found = await page.wait_for_function(
        "words => window.shownAt[words]", arg=words, timeout=PATIENT_SECONDS * 1000
    )
    return float(await found.json_value())


@asynccontextmanager
async def _serving(project: Path, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """The address of a `podium serve` over this project, in a process of its own."""
    output = project.with_name("served")
    process = _started(project, environ, output)

    def answers() -> str:
        if process.poll() is not None:
            raise RuntimeError(f"podium serve has ended: {_beside(output).read_text()}")
        return output.read_text() if output.read_text().endswith("\n") else ""

    try:
        yield json.loads(await retry_until(answers))["url"]
    finally:
        process.terminate()
        process.wait(timeout=PATIENT_SECONDS)


def _started(project: Path, environ: Mapping[str, str], output: Path) -> subprocess.Popen[bytes]:
    podium = str(Path(sys.executable).with_name("podium"))
    words = [podium, "serve", "--port", "0", "--json", "--no-worker"]
    with output.open("wb") as out, _beside(output).open("wb") as err:
        return subprocess.Popen(words, cwd=project, env=environ, stdout=out, stderr=err)


def _beside(output: Path) -> Path:
    return output.with_suffix(".err")
